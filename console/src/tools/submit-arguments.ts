// What a form that was made from a schema does when it is submitted.
import type { FormEvent } from "react";

/** Sends where everything is right, and else takes the person to the first field that is not. */
export function submitArguments(event: FormEvent<HTMLFormElement>, check: () => boolean, send: () => void): void {
  event.preventDefault();
  const form = event.currentTarget;
  if (check() && !form.querySelector("[data-json-wrong]")) send();
  // A field is marked as wrong only when the form has been drawn again.
  else setTimeout(() => form.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), 30);
}
