/** What `tsc --strict` must accept, and what it must refuse: a test runs the compiler, nothing runs this file. */

import { Client, type Domain, loadProtocol, type Protocol } from "deniable";
import type { SurveyElement } from "deniable/embed";

/** An answer of every kind; a kind that is missing here is an error of the compiler. */
export function someAnswer(domain: Domain): unknown {
  switch (domain.kind) {
    case "categories":
      return domain.labels[0];
    case "integers":
    case "interval":
      return domain.low;
    case "strings":
    case "short text":
      return "text";
    case "bit strings":
      return "0".repeat(Math.ceil(domain.bits / 4));
    case "records":
    case "grid":
      return Object.fromEntries(domain.columns.map((column) => [column.name, someAnswer(column.domain)]));
    case "sets":
      return [domain.items.label(0)].slice(0, domain.most);
    case "key-numbers":
      return { [String(domain.items.label(0))]: domain.numbers.high };
    default: {
      const none: never = domain;
      return none;
    }
  }
}

export const report = (protocol: Protocol): Uint8Array => protocol.privatize(someAnswer(protocol.domain));

export async function answered(server: string, fingerprint: string): Promise<string> {
  const client = new Client({ server, fingerprint });
  const survey = await client.survey();
  const values = Object.fromEntries(survey.questions.map(({ id, protocol }) => [id, someAnswer(protocol.domain)]));
  const { state } = await client.answer(values);
  return state;
}

export function heard(survey: SurveyElement, pages: Document): void {
  survey.addEventListener("sent", ({ detail }) => console.log(detail.epoch, detail.fingerprint));
  // @ts-expect-error: no event holds an answer
  survey.addEventListener("sent", ({ detail }) => console.log(detail.answer));
  pages.createElement("deniable-survey").addEventListener("refused", ({ detail }) => console.log(detail.kind));
  // @ts-expect-error: a spec is loaded before it is used
  report(loadProtocol);
}
