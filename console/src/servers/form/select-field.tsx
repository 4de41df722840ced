// A choice among a few words.
import { Field } from "../../ui/field";
import type { ServerForm } from "./use-server-form";

type Props = {
  form: ServerForm;
  field: string;
  label: string;
  hint?: string;
  value: string;
  onChange: (value: string) => void;
  options: [string, string][];
};

export function SelectField({ form, field: name, label, hint, value, onChange, options }: Props) {
  return (
    <Field label={label} hint={hint} error={form.problem(name)}>
      {(field) => (
        <select
          {...field}
          className="input w-full"
          value={value}
          onChange={(event) => onChange(event.target.value)}
          onBlur={() => form.leave(name)}
        >
          {options.map(([key, word]) => (
            <option key={key} value={key}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
