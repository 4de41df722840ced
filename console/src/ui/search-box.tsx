// A search field; `/` brings the focus here.
import { Search } from "lucide-react";

type Props = { label: string; value: string; onChange: (value: string) => void; className?: string };

export function SearchBox({ label, value, onChange, className = "" }: Props) {
  return (
    <div className={`relative ${className}`}>
      <Search
        size={15}
        className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-soft"
        aria-hidden
      />
      <input
        type="search"
        data-search
        className="input pl-8"
        aria-label={label}
        placeholder={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        autoComplete="off"
        spellCheck={false}
      />
    </div>
  );
}
