/**
 * A submission that is drawn to be looked at. Its randomness is thrown away: were the device's own draws shown, somebody
 * could change the answer until the noise pleases, and what leaves would no longer follow the law.
 */

import { RandomBits, concat, shareSubmission } from "../deniable.js";

/** Random words that remember what was asked of them. */
export class Recorder extends RandomBits {
  draws = [];

  bernoulli(threshold) {
    const hit = super.bernoulli(threshold);
    this.draws.push({ kind: "coin", chance: chance(threshold), hit });
    return hit;
  }

  integers(m) {
    const got = super.integers(m);
    this.draws.push({ kind: "pick", of: m, got });
    return got;
  }

  draw(sums) {
    const got = super.draw(sums);
    this.draws.push({ kind: "draw", got });
    return got;
  }

  packed(threshold, count) {
    const row = super.packed(threshold, count);
    this.draws.push({ kind: "bits", chance: chance(threshold), count, row: row.slice() });
    return row;
  }
}

export const chance = ({ high, low }) => high / 2 ** 32 + low / 2 ** 64;

/** The body that would be sent, and what was drawn for each question. */
export function rehearse(survey, epoch, values) {
  const parts = survey.questions.map((question) => {
    const bits = new Recorder();
    const report = question.protocol.privatize(values[question.id], bits);
    return { question, report, draws: bits.draws };
  });
  const head = new Uint8Array(8);
  head.set(new TextEncoder().encode("DNR1"));
  new DataView(head.buffer).setUint32(4, epoch, true);
  const id = crypto.getRandomValues(new Uint8Array(16));
  const body = concat(head, id, ...parts.map(({ report }) => report));
  const collectors = survey.terms?.collectors.length ?? 0;
  return { parts, body: collectors ? shareSubmission(body, collectors) : body };
}
