// A form made of a JSON Schema. The value is the truth: what is not in it is not sent.
import { Plus, X } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { JsonSchema } from "../api/mcp";
import { ClearButton, Context, type NodeProps, problemAt, useForm } from "./schema-form-context";
import { BooleanControl, ChoiceControl, FixedControl, JsonControl, NumberControl, TextControl } from "./schema-leaves";
import { type FormField, type Path, fieldOf, fieldsOf, setAt, startValue } from "./schema-model";
import type { Problems } from "./validate";

type Props = { schema: JsonSchema; value: unknown; problems: Problems; onChange: (value: unknown) => void };

export function SchemaForm({ schema, value, problems, onChange }: Props) {
  const change = (path: Path, next: unknown) => onChange(setAt(value, path, next) ?? {});
  return (
    <Context value={{ root: schema, value, problems, change }}>
      <div className="space-y-4">
        {fieldsOf(schema, schema).map(([name, field]) => (
          <Node
            key={name}
            field={field}
            path={[name]}
            value={(value as Record<string, unknown> | null)?.[name]}
            depth={1}
          />
        ))}
      </div>
    </Context>
  );
}

/** A field, with a box for null where null is allowed. */
function Node(props: NodeProps) {
  const { field, path, value } = props;
  const form = useForm();
  const { t } = useTranslation();
  const isNull = value === null;
  return (
    <div>
      {isNull ? <NullField {...props} /> : <Control {...props} />}
      {field.nullable && (
        <label className="mt-1 flex items-center gap-1.5 text-sm text-soft">
          <input
            type="checkbox"
            className="check mt-0"
            aria-label={t("run.isNull", { field: field.label })}
            checked={isNull}
            onChange={(event) => form.change(path, event.target.checked ? null : undefined)}
          />
          {t("run.nullShort")}
        </label>
      )}
    </div>
  );
}

function NullField({ field }: NodeProps) {
  return (
    <p className="font-medium">
      {field.label} <code className="text-soft">null</code>
    </p>
  );
}

function Control(props: NodeProps): ReactNode {
  switch (props.field.kind) {
    case "string":
    case "text":
      return <TextControl {...props} />;
    case "number":
    case "integer":
      return <NumberControl {...props} />;
    case "boolean":
      return <BooleanControl {...props} />;
    case "choice":
      return <ChoiceControl {...props} />;
    case "object":
      return <ObjectControl {...props} />;
    case "array":
      return <ArrayControl {...props} />;
    case "fixed":
      return <FixedControl {...props} />;
    case "json":
      return <JsonControl {...props} />;
  }
}

function Group({
  field,
  path,
  children,
  action,
}: {
  field: FormField;
  path: Path;
  children: ReactNode;
  action?: ReactNode;
}) {
  const problem = problemAt(useForm(), path);
  return (
    <fieldset className="min-w-0 rounded-lg border border-line p-3">
      <legend className="px-1 font-medium">{field.label}</legend>
      {field.description && <p className="-mt-1 mb-2 text-sm text-soft">{field.description}</p>}
      {problem && <p className="mb-2 text-sm text-bad">{problem}</p>}
      {children}
      {action}
    </fieldset>
  );
}

function AddButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" className="btn btn-small" onClick={onClick}>
      <Plus size={14} aria-hidden />
      {label}
    </button>
  );
}

/** An optional object is not there until it is asked for. */
function ObjectControl(props: NodeProps) {
  const { field, path, value, depth } = props;
  const form = useForm();
  const { t } = useTranslation();
  if (value === undefined && !field.required) {
    return (
      <Group field={field} path={path}>
        <AddButton
          label={t("run.addObject", { field: field.label })}
          onClick={() => form.change(path, startValue(field))}
        />
      </Group>
    );
  }
  const object = (value ?? {}) as Record<string, unknown>;
  return (
    <Group field={field} path={path} action={<ClearButton {...props} />}>
      <div className="space-y-3">
        {fieldsOf(field.schema, form.root, depth).map(([name, inner]) => (
          <Node key={name} field={inner} path={[...path, name]} value={object[name]} depth={depth + 1} />
        ))}
      </div>
    </Group>
  );
}

function ArrayControl({ field, path, value, depth }: NodeProps) {
  const form = useForm();
  const { t } = useTranslation();
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  const itemField = (n: number) => ({
    ...fieldOf(field.schema.items ?? {}, field.label, true, form.root, depth),
    label: t("run.item", { field: field.label, n }),
  });
  const remove = (index: number) => {
    const rest = items.filter((_, at) => at !== index);
    form.change(path, rest.length === 0 && !field.required ? undefined : rest);
  };
  const add = () => {
    const start = startValue(itemField(items.length + 1));
    // An item that is still empty has a place all the same.
    form.change(path, [...items, start === undefined ? "" : start]);
  };
  return (
    <Group
      field={field}
      path={path}
      action={<AddButton label={t("run.addItem", { field: field.label })} onClick={add} />}
    >
      <ul className="mb-2 space-y-2 empty:hidden">
        {items.map((item, index) => (
          // Items are told apart by their place.
          <li key={index} className="flex items-start gap-1.5">
            <div className="min-w-0 flex-1">
              <Node field={itemField(index + 1)} path={[...path, index]} value={item} depth={depth + 1} />
            </div>
            <button
              type="button"
              className="btn btn-quiet btn-icon mt-6"
              aria-label={t("run.removeItem", { field: field.label, n: index + 1 })}
              onClick={() => remove(index)}
            >
              <X size={15} aria-hidden />
            </button>
          </li>
        ))}
      </ul>
    </Group>
  );
}
