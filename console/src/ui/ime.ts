// Enter that ends a composition (Japanese, Chinese, Korean input) is not Enter that submits.
import type { KeyboardEvent } from "react";

export function isComposing(event: KeyboardEvent | globalThis.KeyboardEvent): boolean {
  const native = "nativeEvent" in event ? event.nativeEvent : event;
  // Safari ends the composition before the key event and only keyCode 229 tells.
  return native.isComposing || native.keyCode === 229;
}

/** For a form: keeps a composing Enter from submitting it. */
export function guardComposition(event: KeyboardEvent): void {
  if (event.key === "Enter" && isComposing(event)) event.preventDefault();
}

/** Whether this is Ctrl+Enter or Cmd+Enter, outside a composition. */
export function isSubmitChord(event: KeyboardEvent): boolean {
  return event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isComposing(event);
}
