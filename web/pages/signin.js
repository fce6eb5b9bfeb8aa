/** The analyst's token: typed in, kept in this variable, gone with the page. */

import { Api } from "./api.js";
import { h, newId } from "./dom.js";

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
  const button = h("button", { type: "submit" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    message.textContent = "";
    button.disabled = true;
    try {
      await enter(new Api(input.value.trim()));
    } catch (error) {
      const unknown = error.kind === "urn:deniable:problem:unauthorized";
      message.textContent = unknown ? "This token is not known here: is all of it there?" : `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
      input.focus();
    } finally {
      button.disabled = false;
    }
  };
  return h(
    "form",
    { class: "card narrow", onsubmit: submit },
    h("h2", {}, "Sign in"),
    h("label", { for: id }, "Analyst's token"),
    input,
    h(
      "p",
      { class: "note", id: `${id}-help` },
      "It is kept in this page's memory only: closing or reloading the page forgets it. The machine's owner makes one with ",
      h("code", {}, "deniable store token create --role analyst"),
      ".",
    ),
    message,
    button,
  );
}
