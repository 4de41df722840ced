// The head of a page: its one h1, which takes the focus after a navigation so that a screen
// reader says where it is.
import { type ReactNode, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";

/** The page that is loaded first must not take the focus from where the browser put it. */
let seenOne = false;

export function PageTitle({ children }: { children: string }) {
  const { t } = useTranslation();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = t("app.title", { page: children });
  }, [children, t]);
  useEffect(() => {
    if (seenOne) heading.current?.focus({ preventScroll: true });
    seenOne = true;
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1} className="min-w-0 text-xl font-semibold tracking-tight">
      {children}
    </h1>
  );
}

export function PageHead({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
      <PageTitle>{title}</PageTitle>
      {children && <div className="flex flex-wrap items-center gap-2">{children}</div>}
    </div>
  );
}
