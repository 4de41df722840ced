// Runs a tool: its arguments as a form, as JSON or as the request that is sent, and the result.
import { LoaderCircle, Play, Square } from "lucide-react";
import { type FormEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import type { JsonSchema, Tool } from "../api/mcp";
import type { ServerView } from "../api/schema";
import { Alert } from "../ui/alert";
import { CopyButton } from "../ui/copy-button";
import { Field } from "../ui/field";
import { guardComposition, isSubmitChord } from "../ui/ime";
import { LongText } from "../ui/json-view";
import { Modal } from "../ui/modal";
import { TabPanel, Tabs } from "../ui/tabs";
import { Unsaved } from "../ui/unsaved";
import { RunHistory } from "./run-history";
import { RunResult } from "./run-result";
import { SchemaForm } from "./schema-form";
import { submitArguments } from "./submit-arguments";
import { type Arguments, useArguments } from "./use-arguments";
import { type Run, useRun } from "./use-run";

type Props = { server: ServerView; tool: Tool; onClose: () => void };

export default function RunDialog({ server, tool, onClose }: Props) {
  const { t } = useTranslation();
  const schema = useMemo(() => tool.inputSchema ?? {}, [tool]);
  const args = useArguments(schema);
  const runner = useRun(server.id, tool.name);
  const [tab, setTab] = useState("form");
  const formId = useId();
  const result = useScrolledTo(runner.latest?.id);
  const run = () => void runner.run(args.value);
  const submit = (event: FormEvent<HTMLFormElement>) => submitArguments(event, args.check, run);
  const tabs = (["form", "json", "request"] as const).map((value) => ({ value, title: t(`run.${value}`) }));
  return (
    <Modal title={t("run.title", { tool: tool.name })} open onClose={onClose} shape="side" steady>
      <Unsaved when={args.filled && !wasRun(runner.past, args.value)} />
      <div className="space-y-4">
        {tool.description && (
          <p className="line-clamp-6 text-sm whitespace-pre-line text-soft">{tool.description.trim()}</p>
        )}
        {tool.annotations?.destructiveHint && !tool.annotations.readOnlyHint && (
          <Alert tone="warn" role="note" title={t("run.destructiveWarning")} />
        )}
        <form
          id={formId}
          noValidate
          onSubmit={submit}
          onKeyDown={(event) => {
            guardComposition(event);
            if (isSubmitChord(event)) event.currentTarget.requestSubmit();
          }}
        >
          <Tabs label={t("run.tabs")} tabs={tabs} value={tab} onChange={setTab}>
            <TabPanel value="form">
              {hasFields(schema) ? (
                <SchemaForm
                  key={args.round}
                  schema={schema}
                  value={args.value}
                  problems={args.shown}
                  onChange={args.setValue}
                />
              ) : (
                <p className="text-soft">
                  {t(schema.additionalProperties === false ? "run.noArguments" : "run.freeArguments")}
                </p>
              )}
            </TabPanel>
            <TabPanel value="json">
              <JsonTab args={args} />
            </TabPanel>
            <TabPanel value="request">
              <RequestTab tool={tool} value={args.value} />
            </TabPanel>
          </Tabs>
          {args.alert && (
            <div className="mt-3">
              <Alert title={t("run.invalid")}>
                <ul>
                  {args.alert.map((line) => (
                    <li key={line}>{line}</li>
                  ))}
                </ul>
              </Alert>
            </div>
          )}
        </form>
        <RunButtons formId={formId} running={runner.running} onCancel={runner.cancel} />
        <div aria-live="polite" ref={result}>
          {runner.latest && !runner.running && <RunResult tool={tool} run={runner.latest} />}
        </div>
        <RunHistory runs={runner.past} onUse={args.replace} onReplay={(value) => void runner.run(value)} />
      </div>
    </Modal>
  );
}

/** Arguments of a run are in the history. */
const wasRun = (past: readonly Run[], value: unknown) =>
  past.some((run) => JSON.stringify(run.arguments) === JSON.stringify(value));

/** The result of a long form is below the edge of the screen: it is scrolled to when it is there. */
function useScrolledTo(shown: number | undefined) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (shown !== undefined) element.current?.scrollIntoView({ block: "start" });
  }, [shown]);
  return element;
}

const hasFields = (schema: JsonSchema) => Object.keys(schema.properties ?? {}).length > 0;

function JsonTab({ args }: { args: Arguments }) {
  const { t } = useTranslation();
  return (
    <Field label={t("run.jsonLabel")} error={args.wrongText}>
      {(field) => (
        <textarea
          {...field}
          rows={10}
          className="input font-mono text-sm"
          spellCheck={false}
          autoCapitalize="off"
          value={args.text}
          onChange={(event) => args.typeJson(event.target.value)}
        />
      )}
    </Field>
  );
}

function RequestTab({ tool, value }: { tool: Tool; value: unknown }) {
  const { t } = useTranslation();
  const text = JSON.stringify(
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool.name, arguments: value } },
    null,
    2,
  );
  return (
    <>
      <div className="mb-2 flex items-center justify-between gap-2">
        <p className="text-sm text-soft">{t("run.requestHint")}</p>
        <CopyButton text={text} label={t("run.copyRequest")} />
      </div>
      <LongText text={text} coloured />
    </>
  );
}

function RunButtons({ formId, running, onCancel }: { formId: string; running: boolean; onCancel: () => void }) {
  const { t } = useTranslation();
  const away = useAway();
  return (
    <div className="flex items-center gap-2">
      <button type="submit" form={formId} className="btn btn-primary" disabled={running || away}>
        {running ? <LoaderCircle size={15} className="spin" aria-hidden /> : <Play size={15} aria-hidden />}
        {t("run.go")}
      </button>
      {running && (
        <button type="button" className="btn" onClick={onCancel}>
          <Square size={13} aria-hidden />
          {t("run.cancel")}
        </button>
      )}
      <span role="status" className="text-soft">
        {running ? t("run.running") : ""}
      </span>
    </div>
  );
}
