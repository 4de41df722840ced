// The arguments of a tool while they are typed: one value that is shown as a form and as JSON, and
// what is wrong with it.
import type { TFunction } from "i18next";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JsonSchema } from "../api/mcp";
import { jsonWords, parseJson } from "../servers/form/jsonc";
import { fieldsOf, startValue } from "./schema-model";
import { type Problems, validate } from "./validate";

export type Arguments = ReturnType<typeof useArguments>;

/** Required objects and lists are there from the start: their fields can be filled in. */
function initialOf(schema: JsonSchema): Record<string, unknown> {
  const started = fieldsOf(schema, schema)
    .filter(
      ([, field]) => field.required && (field.kind === "object" || field.kind === "array" || field.kind === "fixed"),
    )
    .map(([name, field]) => [name, startValue(field)] as const);
  return Object.fromEntries(started);
}

/** The arguments, in both of their forms, and what is wrong with them. */
export function useArguments(schema: JsonSchema, start: Record<string, unknown> = {}) {
  const { t } = useTranslation();
  const [initial] = useState<unknown>(() => ({ ...initialOf(schema), ...start }));
  const [value, setPlain] = useState(initial);
  const [text, setText] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  const [tried, setTried] = useState(false);
  const problems = useMemo(() => validate(schema, value, t), [schema, value, t]);
  const parsed = useMemo(() => (text === null ? null : parseJson(text)), [text]);
  const wrongText =
    parsed && "problem" in parsed
      ? jsonWords(parsed.problem, t)
      : parsed && !isObject(parsed.value)
        ? t("run.notObject")
        : null;

  const setValue = (next: unknown) => {
    setPlain(next);
    setText(null);
  };
  const typeJson = (next: string) => {
    setText(next);
    const read = parseJson(next);
    if ("value" in read && isObject(read.value)) {
      setPlain(read.value);
      setRound((count) => count + 1);
    }
  };
  const replace = (next: unknown) => {
    setValue(next);
    setRound((count) => count + 1);
  };
  const check = () => {
    setTried(true);
    return wrongText === null && Object.keys(problems).length === 0;
  };
  const alert = tried ? linesOf(wrongText, problems, t) : null;
  const none: Problems = {};
  return {
    value,
    /** Something was typed. */
    filled: JSON.stringify(value) !== JSON.stringify(initial),
    setValue,
    text: text ?? JSON.stringify(value, null, 2),
    typeJson,
    wrongText,
    round,
    replace,
    check,
    shown: tried ? problems : none,
    alert,
  };
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

function linesOf(wrongText: string | null, problems: Problems, t: TFunction): string[] | null {
  if (wrongText) return [wrongText];
  const lines = Object.entries(problems).map(([place, problem]) => {
    const field = place.slice(1).replaceAll("/", " › ");
    return field ? t("run.problemAt", { field, problem: problem ?? "" }) : (problem ?? "");
  });
  return lines.length > 0 ? lines : null;
}
