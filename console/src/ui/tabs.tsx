// Tabs with a row that scrolls sideways where it is too narrow.
import { Tabs as Base } from "@base-ui/react/tabs";
import { type ReactNode, useEffect, useRef } from "react";

export type Tab = { value: string; title: string; count?: number | undefined };

type Props = {
  label: string;
  tabs: readonly Tab[];
  value: string;
  onChange: (value: string) => void;
  children: ReactNode;
};

export function Tabs({ label, tabs, value, onChange, children }: Props) {
  const list = useRef<HTMLDivElement>(null);
  // A count that comes later moves the tabs after it.
  const words = tabs.map(({ title, count }) => `${title} ${count}`).join();
  useEffect(() => {
    showSelected(list.current);
  }, [value, words]);
  return (
    <Base.Root value={value} onValueChange={(next: unknown) => onChange(String(next))}>
      <Base.List
        ref={list}
        aria-label={label}
        activateOnFocus={false}
        className="mb-4 flex overflow-x-auto border-b border-line [scrollbar-width:none]"
      >
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className="tab">
            {tab.title}
            {tab.count !== undefined && <span className="tag ml-1.5">{tab.count}</span>}
          </Base.Tab>
        ))}
      </Base.List>
      {children}
    </Base.Root>
  );
}

/** Moves the row sideways and nothing else: the page stays where its reader has it. */
function showSelected(row: HTMLElement | null): void {
  const tab = row?.querySelector("[aria-selected=true]")?.getBoundingClientRect();
  const frame = row?.getBoundingClientRect();
  if (!row || !tab || !frame) return;
  row.scrollLeft += Math.min(0, tab.left - frame.left) + Math.max(0, tab.right - frame.right);
}

/** `keep` leaves what was typed in place while another tab is looked at. */
export function TabPanel({ value, keep = false, children }: { value: string; keep?: boolean; children: ReactNode }) {
  return (
    <Base.Panel value={value} keepMounted={keep} className="outline-none">
      {children}
    </Base.Panel>
  );
}
