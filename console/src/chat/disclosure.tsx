// Parts that open and close. What was opened stays so while the page lives, however often it is
// drawn anew.
import { ChevronRight } from "lucide-react";
import { type ReactNode, useSyncExternalStore } from "react";
import { createStore } from "../api/store";

/** Far more than anybody opens; the oldest are forgotten. */
const MAX_KEPT = 5000;
const opened = createStore<ReadonlyMap<string, boolean>>(new Map());

/** Whether a part is open, by its name in the whole page. */
export function useOpen(key: string, initial: boolean): [boolean, () => void] {
  const read = () => opened.get().get(key) ?? initial;
  const open = useSyncExternalStore(opened.subscribe, read, read);
  const toggle = () =>
    opened.set((all) => {
      const kept = all.size < MAX_KEPT ? all : [...all].slice(all.size - MAX_KEPT / 2);
      return new Map(kept).set(key, !open);
    });
  return [open, toggle];
}

type ButtonProps = { open: boolean; onToggle: () => void; controls: string; children: ReactNode; className?: string };

export function DisclosureButton({ open, onToggle, controls, children, className = "" }: ButtonProps) {
  return (
    <button
      type="button"
      className={`btn btn-quiet btn-small gap-1 px-1.5 text-soft ${className}`}
      aria-expanded={open}
      aria-controls={open ? controls : undefined}
      onClick={onToggle}
    >
      <ChevronRight size={14} className={`flex-none ${open ? "rotate-90" : ""}`} aria-hidden />
      {children}
    </button>
  );
}
