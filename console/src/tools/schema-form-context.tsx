// What the fields of a schema form share: the value and how it changes, hints, problems, and the
// button that takes an optional field out again.
import { X } from "lucide-react";
import { createContext, useContext } from "react";
import { useTranslation } from "react-i18next";
import type { JsonSchema } from "../api/mcp";
import { sentence } from "../ui/format";
import type { FormField, Path } from "./schema-model";
import type { Problems } from "./validate";

export type FormContext = {
  root: JsonSchema;
  value: unknown;
  problems: Problems;
  change: (path: Path, next: unknown) => void;
};

export const Context = createContext<FormContext | null>(null);

export function useForm(): FormContext {
  const form = useContext(Context);
  if (!form) throw new Error("a field stands outside its form");
  return form;
}

export type NodeProps = { field: FormField; path: Path; value: unknown; depth: number };

export function problemAt(form: FormContext, path: Path): string | undefined {
  const problem = form.problems[path.map((part) => `/${part}`).join("")];
  return problem && sentence(problem);
}

/** What stands below a field: its description, and its default where it has one. */
export function useHint({ description, schema }: FormField): string | undefined {
  const { t } = useTranslation();
  const standard = schema.default === undefined ? "" : t("run.default", { value: JSON.stringify(schema.default) });
  return [description, standard].filter(Boolean).join(" · ") || undefined;
}

/** Takes an optional field out of the value again. */
export function ClearButton({ field, path, value }: NodeProps) {
  const { t } = useTranslation();
  const form = useForm();
  if (field.required || value === undefined) return null;
  return (
    <button
      type="button"
      className="btn btn-quiet btn-icon flex-none"
      aria-label={t("run.clearField", { field: field.label })}
      title={t("run.clearField", { field: field.label })}
      onClick={() => form.change(path, undefined)}
    >
      <X size={15} aria-hidden />
    </button>
  );
}
