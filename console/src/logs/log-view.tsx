// The lines themselves, of which only the visible ones are in the page.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { LogEntry } from "../api/schema";
import { useLanguage } from "../settings/preferences";
import { clock } from "../ui/format";
import { sourceLabel, sourceOf, splitHits } from "./log-buffer";

type Props = {
  lines: readonly LogEntry[];
  search: string;
  follow: boolean;
  wrap: boolean;
  onFollow: (on: boolean) => void;
  empty: string;
};

const ROW = 20;
/** So near to its end a log counts as scrolled to the end. */
const NEAR = 40;

export function LogView({ lines, search, follow, wrap, onFollow, empty }: Props) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 20,
    getItemKey: (index) => lines[index]!.seq,
  });
  useLayoutEffect(() => {
    if (follow && lines.length > 0) virtualizer.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follow, lines, virtualizer]);
  useEffect(() => virtualizer.measure(), [wrap, virtualizer]);
  // Only a person scrolls up; new lines and measured heights move the end, not the reader.
  const scrolled = () => {
    const element = box.current;
    if (!element) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (atEnd && !follow) onFollow(true);
  };
  const released = () => {
    const element = box.current;
    if (element && follow && element.scrollHeight > element.clientHeight) onFollow(false);
  };
  return (
    <div
      ref={box}
      role="log"
      aria-label={t("logs.log")}
      aria-live="off"
      tabIndex={0}
      onScroll={scrolled}
      onWheel={(event) => event.deltaY < 0 && released()}
      onTouchMove={released}
      onKeyDown={(event) => ["ArrowUp", "PageUp", "Home"].includes(event.key) && released()}
      className="card h-[60dvh] min-h-64 overflow-auto bg-sunken font-mono text-[0.8125rem] leading-5"
    >
      {lines.length === 0 ? (
        <p className="p-4 font-sans text-soft">{empty}</p>
      ) : (
        <div className={`relative ${wrap ? "" : "min-w-max"}`} style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((row) => (
            <div
              key={row.key}
              ref={virtualizer.measureElement}
              data-index={row.index}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <Line entry={lines[row.index]!} search={search} wrap={wrap} />
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

const COLOURS = { lifecycle: "text-accent", stderr: "text-ink", stdout: "text-soft" };

const Line = memo(function Line({ entry, search, wrap }: { entry: LogEntry; search: string; wrap: boolean }) {
  const language = useLanguage();
  return (
    <div className={`flex gap-3 px-3 ${wrap ? "whitespace-pre-wrap" : "whitespace-pre"}`}>
      <span className="flex-none text-soft select-none max-sm:hidden">{clock(entry.at, language)}</span>
      <span className={`w-16 flex-none select-none max-sm:hidden ${COLOURS[entry.stream]}`}>
        {sourceLabel(sourceOf(entry))}
      </span>
      <span className={`min-w-0 flex-1 ${entry.stream === "lifecycle" ? "text-accent" : ""}`}>
        {splitHits(entry.line, search).map((piece, index) =>
          index % 2 === 1 ? (
            // Pieces are told apart by their place.
            <mark key={index} className="rounded-sm bg-warn-soft text-warn">
              {piece}
            </mark>
          ) : (
            piece
          ),
        )}
      </span>
    </div>
  );
});
