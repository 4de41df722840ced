// Pasting another client's configuration: the text, then a preview, then what became of it.
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ImportedServer } from "../../api/schema";
import { Field } from "../../ui/field";
import { isSubmitChord } from "../../ui/ime";
import { ImportPreview } from "./import-preview";
import { ImportResults } from "./import-results";
import { type PlannedServer, planImport } from "./import-plan";
import { jsonWords } from "./jsonc";

export function PasteTab({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [servers, setServers] = useState<PlannedServer[] | null>(null);
  const [results, setResults] = useState<ImportedServer[] | null>(null);
  if (results) return <ImportResults results={results} onClose={onClose} />;
  if (servers) return <ImportPreview servers={servers} onBack={() => setServers(null)} onImported={setResults} />;
  return <PasteForm text={text} onText={setText} onPlan={setServers} />;
}

type PasteProps = { text: string; onText: (text: string) => void; onPlan: (servers: PlannedServer[]) => void };

function PasteForm({ text, onText, onPlan }: PasteProps) {
  const { t } = useTranslation();
  const [problem, setProblem] = useState<string | null>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!text.trim()) return setProblem(t("paste.empty"));
    const plan = planImport(text);
    if ("problem" in plan) return setProblem(jsonWords(plan.problem, t));
    if ("none" in plan || plan.servers.length === 0) return setProblem(t("paste.noServers"));
    onPlan(plan.servers);
  };
  return (
    <form
      onSubmit={submit}
      onKeyDown={(event) => isSubmitChord(event) && event.currentTarget.requestSubmit()}
      noValidate
    >
      <Field label={t("paste.label")} hint={t("paste.hint")}>
        {(field) => (
          <textarea
            {...field}
            rows={14}
            className="input font-mono text-sm"
            spellCheck={false}
            autoCapitalize="off"
            aria-invalid={problem !== null}
            placeholder={
              '{\n  "mcpServers": {\n    "filesystem": {\n      "command": "npx",\n      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]\n    }\n  }\n}'
            }
            value={text}
            onChange={(event) => {
              setProblem(null);
              onText(event.target.value);
            }}
          />
        )}
      </Field>
      {problem && (
        <p role="alert" className="mt-2 text-sm text-bad">
          {problem}
        </p>
      )}
      <div className="mt-3 flex justify-end">
        <button type="submit" className="btn btn-primary">
          {t("paste.preview")}
        </button>
      </div>
    </form>
  );
}
