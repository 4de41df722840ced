// The runs of a tool in this session, newest first.
import { RotateCw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useLanguage } from "../settings/preferences";
import { clock, milliseconds } from "../ui/format";
import { OutcomeLine } from "./run-result";
import type { Run } from "./use-run";

type Props = { runs: readonly Run[]; onUse: (value: unknown) => void; onReplay: (value: unknown) => void };

export function RunHistory({ runs, onUse, onReplay }: Props) {
  const { t } = useTranslation();
  const language = useLanguage();
  if (runs.length === 0) return null;
  return (
    <details>
      <summary className="font-medium">
        {t("run.history")} <span className="tag">{runs.length}</span>
      </summary>
      <ul className="mt-2 divide-y divide-line">
        {runs.map((run) => (
          <li key={run.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5 text-sm">
            <span className="text-soft">{clock(new Date(run.startedAt).toISOString(), language)}</span>
            <OutcomeLine run={run} />
            <span className="text-soft">{milliseconds(run.ms)} ms</span>
            <code className="min-w-0 flex-1 truncate text-soft">{JSON.stringify(run.arguments)}</code>
            <button type="button" className="btn btn-small" onClick={() => onUse(run.arguments)}>
              {t("run.useArguments")}
            </button>
            <button
              type="button"
              className="btn btn-small btn-icon"
              aria-label={t("run.replay")}
              title={t("run.replay")}
              onClick={() => onReplay(run.arguments)}
            >
              <RotateCw size={13} aria-hidden />
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
