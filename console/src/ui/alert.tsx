// Something that a person should read: a failure, a warning or a note, in place and not in a toast.
import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ApiFailure } from "../api/client";
import { Sentence } from "./sentence";

const LOOKS = {
  bad: {
    box: "border-bad/40 bg-bad-soft",
    icon: <CircleAlert size={16} className="mt-0.5 flex-none text-bad" aria-hidden />,
  },
  warn: {
    box: "border-warn/40 bg-warn-soft",
    icon: <TriangleAlert size={16} className="mt-0.5 flex-none text-warn" aria-hidden />,
  },
  info: { box: "border-line bg-sunken", icon: <Info size={16} className="mt-0.5 flex-none text-soft" aria-hidden /> },
};

type Props = {
  tone?: keyof typeof LOOKS;
  title: string;
  role?: "alert" | "status" | "note";
  label?: string;
  children?: ReactNode;
  action?: ReactNode;
  id?: string;
};

export function Alert({ tone = "bad", title, role = "alert", label, children, action, id }: Props) {
  const look = LOOKS[tone];
  return (
    <div
      role={role}
      aria-label={label ?? (role === "alert" ? title : undefined)}
      id={id}
      className={`flex items-start gap-2.5 rounded-lg border px-3 py-2.5 ${look.box}`}
    >
      {look.icon}
      <div className="min-w-0 flex-1">
        <p className="font-medium">{title}</p>
        {children && <div className="mt-0.5 text-sm">{children}</div>}
      </div>
      {action}
    </div>
  );
}

/** A failed request: what was attempted, why it failed, what to do next. */
export function FailureAlert({ title, failure, retry }: { title: string; failure: unknown; retry?: () => void }) {
  const { t } = useTranslation();
  const { message, hint } = explain(failure, t("failure.unreachable"), t("failure.unreachableHint"));
  const action = retry && (
    <button type="button" className="btn btn-small" onClick={retry}>
      {t("common.retry")}
    </button>
  );
  return (
    <Alert title={title} action={action}>
      <Sentence text={message} />
      {hint && <Sentence text={hint} className="text-soft" />}
    </Alert>
  );
}

function explain(
  failure: unknown,
  unreachable: string,
  unreachableHint: string,
): { message: string; hint: string | null } {
  if (!(failure instanceof ApiFailure))
    return { message: failure instanceof Error ? failure.message : String(failure), hint: null };
  if (failure.kind === "unreachable") return { message: unreachable, hint: unreachableHint };
  return { message: failure.message, hint: failure.hint };
}
