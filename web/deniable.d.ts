/** Types of `deniable.js`; the comments there say why things are as they are. */

export type Answer = string | number | bigint | boolean;

/** "unknown": a protocol or a kind of answers that this version does not know; the message names it. */
export type Refusal = "spec" | "unknown" | "domain" | "context" | "budget" | "closed" | "storage" | "network" | "optedOut" | "round" | "changed";

/** Everything that is refused. The message can be shown to the respondent and never contains the answer. */
export class DeniableError extends Error {
    constructor(kind: Refusal, message: string);
    readonly kind: Refusal;
    /** Of the kind "changed": what `Client.changes` says. */
    readonly changes?: readonly Change[];
}

/** Random words and exact draws from them. */
export class RandomBits {
    /** `fill` overwrites an array with the next bytes of a stream; by default `crypto.getRandomValues`. */
    constructor(fill?: (bytes: Uint8Array) => unknown, bufferBytes?: number);
    /** How many 64-bit words were drawn. */
    words: number;
    bernoulli(probability: Threshold): boolean;
    integers(below: number): number;
    /** An outcome of integer weights, given as their running sums. */
    draw(sums: readonly bigint[]): number;
    packed(probability: Threshold, count: number): Uint8Array;
}

/** The probability numerator / 2^64. */
export interface Threshold {
    readonly numerator: bigint;
    readonly high: number;
    readonly low: number;
}

/** What every domain offers. `Read` is an answer as laws take it. */
interface AnyDomain<Read> {
    /** What its answers are, in words. */
    readonly noun: string;
    /** Whether it can be a column of a record. */
    readonly column?: boolean;
    /** Refuses what is no answer, without quoting it. */
    read(value: unknown): Read;
    encode(read: Read): Uint8Array;
}

/** A finite list of answers; what is read is a position. */
interface ListedDomain<Label> extends AnyDomain<number> {
    readonly size: number;
    label(position: number): Label;
    text(position: number): string;
}

/** A number between two ends. */
interface NumberDomain {
    readonly low: number;
    readonly high: number;
    readonly unit: string;
    number(read: number): number;
}

export type Domain =
    | (ListedDomain<Answer> & { readonly kind: "categories"; readonly labels: readonly Answer[] })
    | (ListedDomain<number> & NumberDomain & { readonly kind: "integers" })
    | (AnyDomain<string> & {
          readonly kind: "strings";
          readonly open: true;
          readonly cells: number;
          readonly cohorts: number;
          readonly key: string;
          text(read: string): string;
          cell(text: string, cohort: number): number;
      })
    /** Values beyond an end are read as that end. */
    | (AnyDomain<number> & NumberDomain & { readonly kind: "interval" })
    /** Answers are objects with one value per column. */
    | (AnyDomain<readonly unknown[]> & RecordDomain & { readonly kind: "records" })
    /** Answers are { north, east }, counted from 1; `shape` is [rows, columns]. */
    | (AnyDomain<readonly unknown[]> & RecordDomain & { readonly kind: "grid"; readonly shape: readonly [number, number]; readonly cell: string })
    /** Answers are arrays of items; of more than `most` some are drawn. */
    | (AnyDomain<readonly number[]> & SetDomain & { readonly kind: "sets" })
    /** Answers are objects with a number for some of the keys. */
    | (AnyDomain<readonly (readonly [number, number])[]> & SetDomain & { readonly kind: "key-numbers"; readonly numbers: NumberDomain })
    | (AnyDomain<Uint8Array> & { readonly kind: "short text" | "bit strings"; readonly bits: number; readonly key: string });

interface RecordDomain {
    readonly columns: readonly { readonly name: string; readonly title: string; readonly domain: Domain }[];
}

interface SetDomain {
    readonly items: ListedDomain<Answer>;
    readonly most: number;
}

/** The names that a spec may use here. */
export const KINDS: {
    readonly domains: readonly string[];
    readonly protocols: readonly string[];
    readonly shapes: readonly string[];
    readonly campaigns: readonly string[];
};

/** Between which inputs a level holds. Levels of different relations are never added. */
export type Relation = "any" | "metric" | "profiles" | "edge" | "stream" | "sum";

export interface Protocol {
    /** One of `KINDS.protocols`. */
    readonly name: string;
    /** What a report is, for pages that explain it: one of `KINDS.shapes`. */
    readonly shape: string;
    /** An exact fraction, "a" or "a/b". */
    readonly epsilon: string;
    /** Null where the protocol is unknown here. */
    readonly relation: Relation | null;
    readonly domain: Domain;
    readonly reportBytes: number;
    /** How many different reports there are, at most. */
    readonly forms: number;
    /** The integers out of 2^64 that the law consists of. */
    readonly thresholds: Readonly<Record<string, Threshold>>;
    /** Between which inputs, in words. */
    readonly over?: string;
    /** With how much probability a report may tell more than epsilon says: an exact fraction; absent where none does. */
    readonly delta?: string;
    /** Of Window, OneBitMean and MeanTable: the positions that numbers are rounded to; of the first two the outputs of each. */
    readonly positions?: number;
    readonly width?: number;
    place?(read: number): { readonly below: number; readonly rest: number };
    /** Of Table: what a report can say, and the integer weights, one row per answer. */
    readonly outputs?: readonly Answer[];
    readonly rows?: readonly (readonly bigint[])[];
    readonly total?: bigint;
    /** Of ProfileTable: the row of a read answer, and which outputs each profile can give. */
    rowOf?(read: readonly [number, number]): number;
    readonly possible?: readonly (readonly boolean[])[];
    /** Of ProfileTable: the integer weights of each output, one row per profile, and the total of each row. */
    readonly released?: readonly (readonly bigint[])[];
    readonly wholes?: readonly bigint[];
    /** Of hashes: their bits; of subsets: their size; of Hadamard response: the blocks and their size. */
    readonly hashBits?: number;
    readonly count?: number;
    readonly blocks?: number;
    readonly blockSize?: number;
    /** Of subsets that are written as a seed and a cell: what they are chosen from, how often they hold the answer, and what a report holds. */
    readonly slots?: number;
    readonly cells?: number;
    readonly window?: number;
    readonly inside?: number;
    parts?(report: Uint8Array): { readonly seed: number; readonly cell: number };
    supports?(read: number, report: Uint8Array): boolean;
    /** Of Table: the hypotheses that the reports decide between, if there are any. */
    readonly laws?: readonly { readonly name: Answer; readonly weights: readonly bigint[] }[];
    /** Of Moments and Queries: the figures, of which a report is about one, and a figure of a read answer. */
    readonly figures?: readonly { readonly name: string; readonly weight: number; readonly protocol: Protocol }[];
    figure?(read: number | readonly number[], group: number): number;
    /** Of Queries that are read as a regression: its target among the features and its link, and the coefficients of each form, over 2^16. */
    readonly regress?: { readonly target: number; readonly link: string };
    readonly at?: readonly (readonly number[])[];
    /** Of Attributes: the columns, of which a report is about one. */
    readonly groups?: readonly { readonly name: string; readonly weight: number; readonly protocol: Protocol }[];
    /** Of Attributes that ask for columns together: the columns of each group, and the number of the combination of a read answer. */
    readonly views?: readonly (readonly number[])[];
    combination?(read: readonly unknown[], group: number): unknown;
    /** Of Stratified: the parts of an answer that are sent as they are, the strata that are counted, and what asks for the answer. */
    readonly clear?: readonly string[];
    readonly strata?: readonly { readonly name: string; readonly weight: number; readonly protocol: Protocol }[];
    readonly inner?: Protocol;
    /** Of Stratified and PrivateStrata: the parts of an answer that results are told apart by. */
    readonly shared?: readonly string[];
    /** Of PrivateStrata: the strata, and the combination that a read answer is, with the cell of the answer itself. */
    readonly stratumNames?: readonly string[];
    combined?(read: readonly unknown[], cell: number): number;
    /** Of Ranges and Rectangles: the levels, of which a report is about one, and the node of a level that a read answer lies in. */
    readonly levels?: readonly { readonly name: string; readonly weight: number; readonly protocol: Protocol }[];
    project?(read: unknown, level: number): unknown;
    /**
     * Of PlanarLaplace: how far a place moves, the cells that it may move to, the moves, and integer weights of staying, of any cell, and
     * of reports that are the place itself, summed over all places.
     */
    readonly reach?: number;
    readonly plane?: number;
    readonly offsets?: readonly (readonly [number, number])[];
    readonly chances?: { readonly stays: bigint; readonly anywhere: bigint; readonly total: bigint; readonly right: bigint };
    /** Of ItemSets: what of a set may be reported, items, pairs or triples. */
    readonly kinds?: readonly { readonly name: string; readonly weight: number; readonly protocol: Protocol }[];
    /** Of CollisionSets: the cell of an item under the hash function of a cohort; of SubsetSets: items and dummies. */
    cell?(element: number, cohort: number): number;
    readonly size?: number;
    /** Of KeyValue and PrivateStrata: the law of the set of keys at their ends, or of combinations, and what is estimated. */
    readonly law?: Protocol;
    readonly readings?: readonly string[];
    /** Whether a report is one of the answers. */
    readonly isAnswer?: boolean;
    /**
     * Of protocols in two stages, such as LGRR: the epsilon of a kept state and of the second stage (rounded up), how
     * many times better reports of one device fit each other than those of two, and the two draws. `epsilon` is that of one report. A later state of a device is drawn like
     * its first one, which is given; `keptUnder` is the key of an answer's state, where that is not the answer.
     */
    readonly forever?: string;
    readonly instantEpsilon?: string;
    linking?(epochs: number): number;
    permanent?(read: unknown, random: RandomBits, like?: Uint8Array): Uint8Array;
    keptUnder?: ((read: unknown, state: Uint8Array) => Uint8Array) | null;
    report?(state: Uint8Array, random: RandomBits): Uint8Array;
    /** Why no answer can be given here: set where a survey was read with `toAnswer: false` and this is unknown. */
    readonly unknown?: string;
    /** Randomize what the domain has read. */
    draw(read: unknown, random: RandomBits): Uint8Array;
    /** Randomize one answer. */
    privatize(value: unknown, random?: RandomBits): Uint8Array;
    /** The answer itself as bytes; not for sending. */
    encode(value: unknown): Uint8Array;
}

export function loadProtocol(spec: unknown): Protocol;
/** The cell of a place in a bounding box, for a grid of [rows, columns]; outside of it the nearest cell at the edge. */
export function cellIn(
  box: { readonly south: number; readonly west: number; readonly north: number; readonly east: number },
  shape: readonly [number, number],
  latitude: number,
  longitude: number,
): { readonly north: number; readonly east: number };
export function canonicalBytes(spec: unknown): Uint8Array;
/** What is wrong with a text of a survey (hidden characters, blanks), to follow the name of the text; or null. */
export function textProblem(text: string): string | null;
export function fingerprint(kind: string, bytes: Uint8Array): Promise<string>;
export function sha256(bytes: Uint8Array): Uint8Array;
export function hmac(key: Uint8Array, message: Uint8Array): Uint8Array;
export function concat(...parts: ArrayLike<number>[]): Uint8Array;
export function hex(bytes: Iterable<number>): string;

export interface Question {
    readonly id: string;
    readonly text: string;
    readonly protocol: Protocol;
}

export interface Terms {
    readonly owner: string;
    readonly purpose: string;
    readonly epochs: {
        /** Seconds since 1970. */
        readonly origin: number;
        readonly seconds: number;
        readonly early: number;
        readonly late: number;
        readonly first: number;
        readonly last: number;
        /** The epoch of a moment, in seconds since 1970. */
        at(moment: number): number;
    };
    readonly longitudinal: {
        readonly rule: "none" | "memoize" | "two-stage" | "evolving";
        readonly epochs: number;
        readonly values?: number;
        /** Of two stages: the epsilon of one submission, and of all that are drawn from the same kept states. */
        readonly first?: string;
        readonly forever?: string;
        /** Of answers that evolve: how many changes of an answer count. */
        readonly changes?: number;
    };
    /** Whether answers evolve: one change of a device is reported, and epsilon holds for everything that it sends. */
    readonly streams: boolean;
    /** Whether a device keeps answers; and whether it draws a report from a kept state each time. */
    readonly keeps: boolean;
    readonly stages: boolean;
    /** How often a device randomizes an answer at most. */
    readonly draws: number;
    /** `delta` is "0" and `relation` "any" where the survey does not name them. */
    readonly budget: { readonly group: string; readonly epsilon: string; readonly delta: string; readonly relation: Relation };
    /** Seconds since 1970. */
    readonly opens: number;
    readonly expires: number;
    readonly retention: "tally" | "reports";
    readonly minReports: number;
    /** "public" if anybody may read the results at the service's page /r/{fingerprint}. */
    readonly results: "private" | "public";
    readonly replaces: string | null;
    readonly campaign: Round | null;
  /** Who mixes sealed submissions on their way; null where they go to the server. */
  readonly relay: { readonly address: string; readonly key: string; readonly batch: number; readonly host: string } | null;
}

/** Where a survey stands among the rounds of one collection. */
export interface Round {
    /** One of `KINDS.campaigns`. */
    readonly kind: string;
    readonly parameters: Readonly<Record<string, unknown>>;
    readonly round: number;
    readonly rounds: number;
    /** From round 2 on: the fingerprints of the first survey and of the survey before, and the digest of its tally. */
    readonly first?: string;
    readonly before?: string;
    readonly tally?: string;
}

export type Fetch = (address: string, options: RequestInit) => Promise<Response>;

export interface ReadOptions {
    /** False for pages that only show results: kinds that are unknown here are kept instead of refused. */
    toAnswer?: boolean;
}

export class Survey {
    private constructor();
    static fromBytes(bytes: Uint8Array, pinnedFingerprint: string, options?: ReadOptions): Promise<Survey>;
    static fetch(serverUrl: string, pinnedFingerprint: string, fetch?: Fetch, options?: ReadOptions): Promise<Survey>;
    readonly name: string;
    readonly fingerprint: string;
    readonly bytes: Uint8Array;
    readonly questions: readonly Question[];
    /** null for a survey of version 1, which is for files only. */
    readonly terms: Terms | null;
    /** Of one submission: an exact fraction. */
    readonly epsilon: string;
    /** What a ledger debits each time that answers are randomized, and what it debits at most. */
    readonly debit: string;
    readonly budgetEpsilon: string;
    /** Whether repeated reports show when an answer changed and which earlier one returned. */
    readonly showsChanges: boolean;
    /** Of as many submissions as a device may make; null where no number holds, because changes show. */
    readonly lifetimeEpsilon: string | null;
    /** With how much probability a submission may tell more than epsilon says: an exact fraction; null where none does. */
    readonly delta: string | null;
    /** The same over as many submissions as a device may make. */
    readonly budgetDelta: string | null;
    /** Between which inputs the levels hold; null where all protocols are unknown here. */
    readonly relation: Relation | null;
    readonly reportBytes: number;
    /** The languages of its texts, by code, its own first; none where it does not name it. */
    readonly languages: readonly string[];
    /** The language of the texts of this object; null where the survey does not name it. */
    readonly spoken: string | null;
    /** The survey's language for a reader, by code; undefined where it has none. */
    languageFor(wanted: string): string | undefined;
    /** The same survey in another of its languages, or as it is: texts and answers are in it, everything else is the same. */
    in(wanted: string): Survey;
    /** Answers in one of its languages, as the survey's own at the same positions. */
    original(values: Readonly<Record<string, unknown>>, language: string): Record<string, unknown>;
    /** Throws unless every question has an answer in its domain, and nothing else has. */
    checkAnswers(values: Readonly<Record<string, unknown>>): void;
}

/** Where a client keeps its ledger, an opaque document. */
/** One submission, as it would be sent, sealed for the collector's key: fresh each time. */
export function sealSubmission(survey: Survey, bytes: Uint8Array): Promise<Uint8Array>;

export interface Store {
    read(): Promise<unknown>;
    /** Keep `change(kept)`, a synchronous function, durably and all at once; if it throws, nothing has happened. */
    update(change: (kept: unknown) => unknown): Promise<void>;
    /** Run one task at a time, over all tabs. */
    exclusive<T>(task: () => Promise<T>): Promise<T>;
    /** Whether what is kept stays; `persist` asks for it. */
    persisted?(): Promise<Persisted>;
    persist?(): Promise<Persisted>;
}

export class BrowserStore implements Store {
    constructor(name?: string);
    read(): Promise<unknown>;
    update(change: (kept: unknown) => unknown): Promise<void>;
    exclusive<T>(task: () => Promise<T>): Promise<T>;
    persisted(): Promise<Persisted>;
    persist(): Promise<Persisted>;
}

/** Whether the browser promises not to clear the record on its own. */
export type Persisted = boolean | "unknown";

/** One difference between a survey and the one that it replaces. */
export interface Change {
    readonly what: string;
    readonly before: string;
    readonly after: string;
    readonly privacy: "weaker" | "stronger" | "neutral";
}

export function surveyChanges(before: Survey, after: Survey): Change[];

export interface Submission {
    readonly survey: string;
    readonly epoch: number;
    /** What was debited for it: exact fractions. */
    readonly epsilon: string;
    readonly delta: string;
    readonly state: "queued" | "sent" | "dropped" | "withdrawn";
    /** Why it was dropped; of one that was sent, "deleted" or "notHeld" after `deleteSent`. */
    readonly reason: string;
    /** Kept while it waits; where the service keeps reports, until `idUntil`, so that it can be deleted there. */
    readonly id?: string;
    /** Seconds since 1970; 0 where the service keeps no reports. */
    readonly idUntil: number;
    /** Every byte of the request's body, while it waits. A fresh receipt has them too. */
    readonly bytes?: Uint8Array;
}

export interface Receipt extends Submission {
    /** False where this epoch was answered before: then that submission stands. */
    readonly fresh: boolean;
}

export interface Budget {
    readonly owner: string;
    readonly group: string;
    readonly cap: string;
    readonly spent: string;
    readonly left: string;
    /** Of the surveys that were answered in this group; a survey of another relation is refused: then `related` is false. */
    readonly relation: Relation;
    readonly related: boolean;
    readonly deltaCap: string;
    readonly deltaSpent: string;
    /** Whether what is left covers another answer to this survey. */
    readonly enough: boolean;
}

export interface ClientOptions {
    /** The collector's address: https, or http on this very machine. */
    server: string;
    /** The survey's fingerprint, from a source other than the server. */
    fingerprint: string;
    /** The fingerprints that the survey's owner has published: any other survey is refused. */
    published?: Iterable<string> | null;
    store?: Store;
    fetch?: Fetch;
    now?: () => number;
    sleep?: (seconds: number) => Promise<unknown>;
    /** How often `deliver` tries before it leaves the rest for later. */
    attempts?: number;
    /** What `settle` reports, by question, for an epoch in which nothing was recorded. */
    idle?: Readonly<Record<string, unknown>>;
}

export class Client {
    constructor(options: ClientOptions);
    survey(): Promise<Survey>;
    /** How the survey differs from the one that it replaces, where that was answered here and this one was not. */
    changes(): Promise<Change[]>;
    /** Refuses with the kind "changed" while there are `changes` that nobody has accepted. `language` is that of the answers. */
    answer(values: Readonly<Record<string, unknown>>, options?: { acceptChanges?: boolean; language?: string | null }): Promise<Receipt>;
    /** Take note of a value of this epoch; the last one counts, or the sum. Says whether note was taken. */
    record(question: string, value: unknown, options?: { add?: boolean }): Promise<boolean>;
    /** One submission for each epoch that is over, recorded or idle; says how many were made. */
    settle(): Promise<number>;
    /** The other round of the survey's campaign that this device has answered; then this one is refused ("round"). */
    otherRound(): Promise<number | null>;
    /** Send what waits; gives the number of submissions that still do. */
    deliver(): Promise<number>;
    history(): Promise<Submission[]>;
    budget(): Promise<Budget | null>;
    state(): Promise<{ optedOut: boolean; remembers: boolean; persisted: Persisted }>;
    persist(): Promise<Persisted>;
    /** Ask a service that keeps reports to delete those of this device; how many it deleted, does not hold, or failed. */
    deleteSent(): Promise<{ deleted: number; notHeld: number; failed: number }>;
    withdraw(): Promise<void>;
    optOut(): Promise<void>;
    optIn(): Promise<void>;
}

/** The key of so many epochs later. */
export function advance(key: Uint8Array, epochs: number): Uint8Array;
/** The id of an epoch's submission, from the key of that epoch. */
export function reportId(key: Uint8Array, pinnedFingerprint: string, epoch: number): Uint8Array;
/** The number from which the public coins of a report follow, the hash function of a set say. */
export function publicNumber(pinnedFingerprint: string, question: string, id: Uint8Array): bigint;
