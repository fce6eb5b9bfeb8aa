/** Requests to the service for analysts: with a token, without cookies, and live changes as they come. */

/** The service that this file came from: two folders and a version below its root. */
export const ROOT = new URL("../../../", import.meta.url).href;

/** A refusal in the service's own words. */
export class Refusal extends Error {
  /** `kind` is the type of the service's problem, as in "urn:deniable:problem:unauthorized"; null if there is none. */
  constructor(status, message, kind = null) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

const PATIENCE = 3000;
const QUIET = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };

export class Api {
  #token;
  #root;

  constructor(token = null, root = ROOT) {
    this.#token = token;
    this.#root = root;
  }

  async #fetch(path, query, options = {}) {
    const url = new URL(path, this.#root);
    for (const [name, value] of Object.entries(query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== null && one !== undefined && one !== "") url.searchParams.append(name, one);
      }
    }
    const headers = { ...options.headers, ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}) };
    let reply;
    try {
      reply = await fetch(url, { ...QUIET, ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal(0, "the service cannot be reached");
    }
    if (reply.ok) return reply;
    const problem = await reply.json().catch(() => null);
    throw new Refusal(reply.status, problem?.detail || problem?.title || `the service answered ${reply.status}`, problem?.type ?? null);
  }

  async json(path, query, options) {
    return (await this.#fetch(path, query, options)).json();
  }

  async text(path, query) {
    return (await this.#fetch(path, query)).text();
  }

  /** All surveys that are collected here. */
  async surveys() {
    const found = [];
    for (let after = ""; after !== null; ) {
      const page = await this.json("v1/surveys", { after });
      found.push(...page.surveys);
      after = page.next;
    }
    return found;
  }

  /** What the service says of one survey now; null if that cannot be had, as where files alone are served. */
  async listed(fingerprint) {
    const query = { after: fingerprint.slice(0, -1), limit: 1 }; // what begins so comes next, and that is this survey
    try {
      const { surveys } = await this.json("v1/surveys", query, { signal: AbortSignal.timeout(PATIENCE) });
      const found = surveys.find((one) => one.fingerprint === fingerprint);
      if (found) return found;
      await this.#fetch(`v1/surveys/${fingerprint}`, {}, { method: "HEAD", signal: AbortSignal.timeout(PATIENCE) });
    } catch (error) {
      if (error.status === 410) return { open: false, state: "deleted" };
    }
    return null;
  }

  /**
   * Server-sent events, read from the body because an EventSource could not send the token. `onevent` gets each event's
   * data, `onstate` true and false as the connection comes and goes; it is made anew until the signal aborts it.
   */
  async follow(path, { onevent, onstate, signal }) {
    let seen = null;
    while (!signal.aborted) {
      try {
        const headers = seen === null ? {} : { "Last-Event-ID": seen };
        const reply = await this.#fetch(path, {}, { headers, signal });
        onstate(true);
        for await (const { id, data } of events(reply.body)) {
          if (data) onevent(JSON.parse(data));
          seen = id ?? seen;
        }
      } catch (error) {
        if (signal.aborted || [401, 403, 410].includes(error.status)) break;
      }
      onstate(false);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

/** The events of a stream of bytes. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const event = {};
      for (const line of block.split(/\r?\n/)) {
        const [, name, text] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
        if (name) event[name] = name === "data" && event.data ? `${event.data}\n${text}` : text;
      }
      yield event;
    }
  }
}
