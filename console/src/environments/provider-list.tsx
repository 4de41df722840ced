// The isolation providers of the daemon's machine, in the order of preference, each with its availability.
import { CircleCheck, CircleDashed } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { IsolationProviderView } from "../api/schema";

export function ProviderList({ providers }: { providers: readonly IsolationProviderView[] }) {
  const { t } = useTranslation();
  if (providers.length === 0) return null;
  return (
    <>
      <h3 className="mt-4 mb-2 font-semibold">{t("host.providers")}</h3>
      <ul className="card divide-y divide-line" aria-label={t("host.providers")}>
        {providers.map(({ name, available, runtime, reason }) => (
          <li key={name} className="flex flex-wrap items-baseline gap-x-3 p-3">
            <code className="font-semibold">{name}</code>
            <span className={`inline-flex items-center gap-1.5 ${available ? "text-ok" : "text-soft"}`}>
              {available ? <CircleCheck size={14} aria-hidden /> : <CircleDashed size={14} aria-hidden />}
              {t(available ? "host.available" : "host.unavailable")}
            </span>
            <span className="min-w-0 text-sm text-soft">{available ? runtime : reason}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
