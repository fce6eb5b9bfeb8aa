/** Types of the element `<deniable-survey>`, which `pages/embed.js` of a service defines; also for JSX. */

import type { Refusal } from "./deniable.js";

export interface SurveyAttributes {
    /** 64 hexadecimal digits, from the survey's author. */
    fingerprint: string;
    /** Another service than the one that `embed.js` came from. */
    server?: string;
    lang?: string;
    /** Leaves out title and purpose. */
    compact?: boolean | "";
    /** One question at a time: always, or never; without it on phones. */
    paged?: "" | "true" | "false";
}

/** No event holds an answer. */
export interface SurveyEvents {
    ready: CustomEvent<{ readonly fingerprint: string }>;
    sent: CustomEvent<{ readonly fingerprint: string; readonly epoch: number; readonly fresh: boolean }>;
    refused: CustomEvent<{ readonly kind: Refusal | "other" }>;
}

export interface SurveyElement extends HTMLElement {
    addEventListener<Name extends keyof SurveyEvents>(name: Name, listener: (event: SurveyEvents[Name]) => void): void;
    addEventListener(name: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

declare global {
    interface HTMLElementTagNameMap {
        "deniable-survey": SurveyElement;
    }
    namespace JSX {
        interface IntrinsicElements {
            "deniable-survey": SurveyAttributes & { ref?: unknown; key?: string | number; class?: string };
        }
    }
}
