/**
 * A survey in React. The page loads `pages/embed.js` of the service once, as a module, and pins the fingerprint here. React passes
 * attributes to the element; events are heard on the element itself, which works in every version of React.
 */

import type { SurveyElement } from "deniable/embed";
import { useEffect, useRef } from "react";

export function Survey({ fingerprint, onSent }: { fingerprint: string; onSent: (epoch: number) => void }) {
  const element = useRef<SurveyElement>(null);
  useEffect(() => {
    const survey = element.current;
    const sent = (event: Event) => onSent((event as CustomEvent<{ epoch: number }>).detail.epoch);
    survey?.addEventListener("sent", sent);
    return () => survey?.removeEventListener("sent", sent);
  }, [onSent]);
  return <deniable-survey ref={element} fingerprint={fingerprint} compact="" />;
}
