// What stands where there is nothing to show (yet).
import { LoaderCircle } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";

export function EmptyState({
  icon,
  title,
  children,
  action,
}: {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="flex flex-col items-center gap-2 px-4 py-12 text-center">
      {icon && <div className="text-soft">{icon}</div>}
      <p className="text-lg font-semibold">{title}</p>
      {children && <div className="max-w-prose text-soft">{children}</div>}
      {action && <div className="mt-2 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  );
}

/** A spinner with a word, shown only when it takes long enough to be seen. */
export function Loading({ label }: { label: string }) {
  const late = useLate(150);
  return (
    <div role="status" className="flex items-center justify-center gap-2 py-12 text-soft">
      {late && (
        <>
          <LoaderCircle size={18} className="spin" aria-hidden />
          {label}
        </>
      )}
    </div>
  );
}

/** Turns true after so many milliseconds: what is fast should not flash. */
export function useLate(ms: number): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), ms);
    return () => clearTimeout(timer);
  }, [ms]);
  return late;
}
