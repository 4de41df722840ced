// Marks a dialog as one with unsaved input: Esc and the close button then ask first.
import { createContext, useContext, useEffect } from "react";

type Mark = (unsaved: boolean) => void;

export const UnsavedContext = createContext<Mark>(() => {});

/** Placed in a dialog; `when` says whether closing would lose something. */
export function Unsaved({ when }: { when: boolean }) {
  const mark = useContext(UnsavedContext);
  useEffect(() => {
    if (!when) return;
    mark(true);
    return () => mark(false);
  }, [when, mark]);
  return null;
}
