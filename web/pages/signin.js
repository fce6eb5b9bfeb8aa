/** The analyst's token: typed in, kept in this variable, gone with the page. */

import { Api } from "./api.js";
import { h, newId } from "./dom.js";
import { rich, say } from "./words.js";

/** A form; `enter(api)` is called with requests that carry the token, and says why they are refused. */
export function signIn(enter) {
  const id = newId("token");
  const message = h("p", { role: "alert", class: "error" });
  const input = h("input", {
    id,
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    placeholder: "dn_…",
    "aria-describedby": `${id}-help`,
  });
  const button = h("button", { type: "submit" }, say("board.sign"));
  const submit = async (event) => {
    event.preventDefault();
    message.textContent = "";
    button.disabled = true;
    try {
      await enter(new Api(input.value.trim()));
    } catch (error) {
      const unknown = error.kind === "urn:deniable:problem:unauthorized";
      message.textContent = unknown ? say("board.sign.unknown") : `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
      input.focus();
    } finally {
      button.disabled = false;
    }
  };
  return h(
    "form",
    { class: "card narrow", onsubmit: submit },
    h("h2", {}, say("board.sign")),
    h("label", { for: id }, say("board.sign.token")),
    input,
    h(
      "p",
      { class: "note", id: `${id}-help` },
      rich("board.sign.text", { command: h("code", {}, "deniable store token create --role analyst") }),
    ),
    message,
    button,
  );
}
