// The fields of a schema form that hold one value each.
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Field } from "../ui/field";
import { ClearButton, type NodeProps, problemAt, useForm, useHint } from "./schema-form-context";
import { optionsOf } from "./schema-model";

export function TextControl(props: NodeProps) {
  const { field, path, value } = props;
  const form = useForm();
  const name = String(path.at(-1));
  const long = field.kind === "text" || /^(?:content|contents|text|body|message|query|sql|code|prompt)$/i.test(name);
  // An emptied optional field is left out; an emptied required one is an empty text.
  const put = (text: string) => form.change(path, text === "" && !field.required ? undefined : text);
  const common = {
    className: "input",
    value: typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value),
    autoComplete: "off",
  };
  return (
    <Field label={field.label} hint={useHint(field)} required={field.required} error={problemAt(form, path)}>
      {(ids) => (
        <span className="flex gap-1.5">
          {long ? (
            <textarea {...ids} {...common} rows={3} onChange={(event) => put(event.target.value)} />
          ) : (
            <input {...ids} {...common} onChange={(event) => put(event.target.value)} />
          )}
          <ClearButton {...props} />
        </span>
      )}
    </Field>
  );
}

/** Text that is not a number yet stays in the value as text: the check then says so. */
export function NumberControl(props: NodeProps) {
  const { field, path, value } = props;
  const form = useForm();
  const put = (text: string) => {
    const trimmed = text.trim();
    const number = Number(trimmed);
    form.change(
      path,
      trimmed === "" ? undefined : Number.isFinite(number) && !/[.eE+-]$|^[.-]0*$/.test(trimmed) ? number : text,
    );
  };
  return (
    <Field label={field.label} hint={useHint(field)} required={field.required} error={problemAt(form, path)}>
      {(ids) => (
        <span className="flex gap-1.5">
          <input
            {...ids}
            className="input max-w-60"
            inputMode={field.kind === "integer" ? "numeric" : "decimal"}
            value={value === undefined ? "" : String(value as number)}
            onChange={(event) => put(event.target.value)}
            autoComplete="off"
          />
          <ClearButton {...props} />
        </span>
      )}
    </Field>
  );
}

export function BooleanControl(props: NodeProps) {
  const { field, path, value } = props;
  const form = useForm();
  const id = useId();
  const hint = useHint(field);
  const problem = problemAt(form, path);
  return (
    <div>
      <div className="flex items-center gap-2">
        <input
          id={id}
          type="checkbox"
          className="check mt-0"
          checked={value === true}
          onChange={(event) => form.change(path, event.target.checked)}
          aria-invalid={Boolean(problem)}
          aria-errormessage={problem ? `${id}-error` : undefined}
          aria-describedby={hint ? `${id}-hint` : undefined}
        />
        <label htmlFor={id} className="font-medium">
          {field.label}
        </label>
        <ClearButton {...props} />
      </div>
      {problem && (
        <p id={`${id}-error`} className="mt-1 text-sm text-bad">
          {problem}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="mt-0.5 text-sm text-soft">
          {hint}
        </p>
      )}
    </div>
  );
}

export function ChoiceControl({ field, path, value }: NodeProps) {
  const form = useForm();
  const { t } = useTranslation();
  const options = optionsOf(field.schema);
  const chosen = options.findIndex((option) => JSON.stringify(option.value) === JSON.stringify(value));
  return (
    <Field label={field.label} hint={useHint(field)} required={field.required} error={problemAt(form, path)}>
      {(ids) => (
        <select
          {...ids}
          className="input max-w-full"
          value={chosen}
          onChange={(event) => form.change(path, options[Number(event.target.value)]?.value)}
        >
          <option value={-1}>{t("run.choose")}</option>
          {options.map((option, index) => (
            <option key={option.label} value={index}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function FixedControl({ field, path, value }: NodeProps) {
  const form = useForm();
  const id = useId();
  return (
    <div className="flex items-center gap-2">
      <input
        id={id}
        type="checkbox"
        className="check mt-0"
        checked={value !== undefined}
        onChange={(event) => form.change(path, event.target.checked ? field.schema.const : undefined)}
      />
      <label htmlFor={id} className="font-medium">
        {field.label} <code className="text-soft">{JSON.stringify(field.schema.const)}</code>
      </label>
    </div>
  );
}

/** For what has no better form. Text that is not JSON is kept, shown as wrong and not sent. */
export function JsonControl({ field, path, value }: NodeProps) {
  const form = useForm();
  const { t } = useTranslation();
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [wrong, setWrong] = useState(false);
  const put = (next: string) => {
    setText(next);
    if (next.trim() === "") {
      setWrong(false);
      return form.change(path, undefined);
    }
    try {
      form.change(path, JSON.parse(next));
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return (
    <Field
      label={field.label}
      hint={[useHint(field), t("run.asJson")].filter(Boolean).join(" · ")}
      required={field.required}
      error={wrong ? t("run.fieldJson") : problemAt(form, path)}
    >
      {(ids) => (
        <textarea
          {...ids}
          data-json-wrong={wrong || undefined}
          rows={3}
          className="input font-mono text-sm"
          spellCheck={false}
          value={text}
          onChange={(event) => put(event.target.value)}
        />
      )}
    </Field>
  );
}
