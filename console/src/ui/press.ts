// What waits until a press is over: a message that appears while a button is held down moves the
// button from under the pointer, and the click is lost.

let pressed = false;
window.addEventListener("pointerdown", () => (pressed = true), true);
for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => (pressed = false), true);

/** Does it now, or after the click of the press that is under way. */
export function afterPress(then: () => void): void {
  if (!pressed) return then();
  const end = new AbortController();
  const released = () => {
    end.abort();
    // The click itself comes right after this event.
    setTimeout(then);
  };
  for (const event of ["pointerup", "pointercancel"]) window.addEventListener(event, released, { signal: end.signal });
}
