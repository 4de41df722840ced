// A line of text of the draft, with its label and what is wrong with it.
import { Field } from "../../ui/field";
import type { Draft } from "./draft";
import type { ServerForm } from "./use-server-form";

type TextKey = {
  [K in keyof Draft]: Draft[K] extends string ? (string extends Draft[K] ? K : never) : never;
}[keyof Draft];

type Props = {
  form: ServerForm;
  /** The part of the draft. */
  of: TextKey;
  /** The daemon's name for it, under which problems come. */
  field: string;
  label: string;
  hint?: string;
  required?: boolean;
  mono?: boolean;
  numeric?: boolean;
  placeholder?: string;
};

export function TextField({
  form,
  of,
  field: name,
  label,
  hint,
  required = false,
  mono = false,
  numeric = false,
  placeholder,
}: Props) {
  return (
    <Field label={label} hint={hint} required={required} error={form.problem(name)}>
      {(field) => (
        <input
          {...field}
          data-first={name === "name" || undefined}
          className={`input ${mono ? "font-mono text-sm" : ""}`}
          value={form.draft[of]}
          onChange={(event) => form.change({ [of]: event.target.value })}
          onBlur={() => form.leave(name)}
          aria-required={required || undefined}
          inputMode={numeric ? "numeric" : undefined}
          placeholder={placeholder}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={mono ? false : undefined}
        />
      )}
    </Field>
  );
}
