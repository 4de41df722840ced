// A list of which only the visible part is in the page, scrolled with the page. Short lists are
// rendered whole: find-in-page and screen readers then see all of it.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

const SMALL = 60;

type Props<T> = {
  label: string;
  items: readonly T[];
  keyOf: (item: T) => string;
  estimate: number;
  children: (item: T, index: number) => ReactNode;
};

export function VirtualList<T>(props: Props<T>) {
  const { label, items, keyOf, children } = props;
  if (items.length > SMALL) return <LongList {...props} />;
  return (
    <ul aria-label={label} className="divide-y divide-line">
      {items.map((item, index) => (
        <li key={keyOf(item)}>{children(item, index)}</li>
      ))}
    </ul>
  );
}

function LongList<T>({ label, items, keyOf, estimate, children }: Props<T>) {
  const list = useRef<HTMLUListElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    setMargin(list.current ? list.current.getBoundingClientRect().top + window.scrollY : 0);
  }, []);
  const virtualizer = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => estimate,
    overscan: 8,
    scrollMargin: margin,
    getItemKey: (index) => keyOf(items[index]!),
  });
  return (
    <ul ref={list} aria-label={label} className="relative" style={{ height: virtualizer.getTotalSize() }}>
      {virtualizer.getVirtualItems().map((row) => (
        <li
          key={row.key}
          ref={virtualizer.measureElement}
          data-index={row.index}
          aria-setsize={items.length}
          aria-posinset={row.index + 1}
          className="absolute inset-x-0 top-0 border-b border-line last:border-b-0"
          style={{ transform: `translateY(${row.start - margin}px)` }}
        >
          {children(items[row.index]!, row.index)}
        </li>
      ))}
    </ul>
  );
}
