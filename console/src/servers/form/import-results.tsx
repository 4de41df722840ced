// What became of an import.
import { CircleCheck, CircleMinus, CircleX } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ImportedServer } from "../../api/schema";
import { Sentence } from "../../ui/sentence";
import { warningWords } from "./check";

const ICONS = {
  imported: <CircleCheck size={16} className="mt-0.5 flex-none text-ok" aria-hidden />,
  skipped: <CircleMinus size={16} className="mt-0.5 flex-none text-soft" aria-hidden />,
  failed: <CircleX size={16} className="mt-0.5 flex-none text-bad" aria-hidden />,
};

export function ImportResults({ results, onClose }: { results: ImportedServer[]; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <div role="status">
      <h3 className="mb-2 font-semibold">{t("paste.results")}</h3>
      <ul className="divide-y divide-line">
        {results.map((result) => (
          <li key={result.name} className="flex items-start gap-2 py-2">
            {ICONS[result.status]}
            <div className="min-w-0">
              <p>
                <span className="font-semibold">{result.name}</span>{" "}
                <span className="text-soft">{t(`paste.${result.status}`)}</span>
              </p>
              {result.reason && <Sentence text={result.reason} className="text-sm text-bad" />}
              {result.warnings.map((warning) => (
                <Sentence key={warning} text={warningWords(warning, t)} className="text-sm text-warn" />
              ))}
            </div>
          </li>
        ))}
      </ul>
      <div className="mt-4 flex justify-end">
        <button type="button" className="btn btn-primary" onClick={onClose}>
          {t("paste.done")}
        </button>
      </div>
    </div>
  );
}
