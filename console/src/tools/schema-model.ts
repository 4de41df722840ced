// From a JSON Schema to the fields of a form. What a form cannot show well becomes a JSON field,
// and only that one.
import type { JsonSchema } from "../api/mcp";

export type FieldKind =
  "string" | "text" | "number" | "integer" | "boolean" | "choice" | "object" | "array" | "json" | "fixed";

export type FormField = {
  kind: FieldKind;
  /** The schema with references followed and null taken out. */
  schema: JsonSchema;
  label: string;
  description: string | undefined;
  required: boolean;
  nullable: boolean;
};

export type Path = readonly (string | number)[];

/** Deeper than this a form is no longer readable. */
const MAX_DEPTH = 5;

export function fieldOf(schema: JsonSchema, name: string, required: boolean, root: JsonSchema, depth = 0): FormField {
  const followed = follow(schema, root);
  const { schema: inner, nullable } = withoutNull(followed, root);
  return {
    kind: depth > MAX_DEPTH ? "json" : kindOf(inner),
    schema: inner,
    label: inner.title ?? followed.title ?? name,
    description: inner.description ?? followed.description,
    required,
    nullable,
  };
}

/** The fields of an object, in the order of its schema, the required ones as they come. */
export function fieldsOf(schema: JsonSchema, root: JsonSchema, depth = 0): [string, FormField][] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, property]) => [
    name,
    fieldOf(asSchema(property), name, required.has(name), root, depth),
  ]);
}

/** What the fields of an object have where nobody writes anything. */
export function defaultsOf(schema: JsonSchema): Record<string, unknown> {
  const fields = fieldsOf(schema, schema).filter(([, field]) => field.schema.default !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, field.schema.default]));
}

/** `true` and `{}` allow anything. */
const asSchema = (value: unknown): JsonSchema =>
  typeof value === "object" && value !== null ? (value as JsonSchema) : {};

/** Follows `$ref` within the document, and a single `allOf`, which generators use to add a title. */
function follow(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let current = schema;
  for (let hops = 0; hops < 16; hops += 1) {
    const only = current.allOf?.length === 1 ? asSchema(current.allOf[0]) : null;
    const next = current.$ref ? resolve(current.$ref, root) : only;
    if (!next) return current;
    const { $ref: _ref, allOf: _all, ...beside } = current;
    current = { ...next, ...beside };
  }
  return {};
}

function resolve(ref: string, root: JsonSchema): JsonSchema | null {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return null;
  let at: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined;
  }
  return typeof at === "object" && at !== null ? (at as JsonSchema) : null;
}

/** `string | null` is a string with a box for null, in both ways of writing it. */
function withoutNull(schema: JsonSchema, root: JsonSchema): { schema: JsonSchema; nullable: boolean } {
  if (Array.isArray(schema.type) && schema.type.includes("null")) {
    const types = schema.type.filter((type) => type !== "null");
    return { schema: { ...schema, type: types.length === 1 ? types[0]! : types }, nullable: true };
  }
  for (const key of ["anyOf", "oneOf"] as const) {
    const parts = schema[key]?.map((part) => follow(asSchema(part), root));
    if (!parts) continue;
    const others = parts.filter((part) => part.type !== "null");
    const nullable = others.length < parts.length;
    const { [key]: _parts, ...beside } = schema;
    if (others.length === 1) return { schema: { ...others[0], ...beside }, nullable };
    return { schema: { ...beside, [key]: others }, nullable };
  }
  return { schema, nullable: false };
}

function kindOf(schema: JsonSchema): FieldKind {
  if ("const" in schema) return "fixed";
  if (Array.isArray(schema.enum) || choicesOfUnion(schema)) return "choice";
  if (schema.oneOf || schema.anyOf || schema.allOf || Array.isArray(schema.type)) return "json";
  switch (schema.type ?? (schema.properties ? "object" : undefined)) {
    case "string":
      return isLong(schema) ? "text" : "string";
    case "integer":
      return "integer";
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "object":
      return schema.properties && Object.keys(schema.properties).length > 0 ? "object" : "json";
    case "array":
      return schema.items && !Array.isArray(schema.items) ? "array" : "json";
    default:
      return "json";
  }
}

const LONG_NAMES = /^(?:content|contents|text|body|message|query|sql|code|prompt|markdown|html)$/i;

function isLong(schema: JsonSchema): boolean {
  const max = schema.maxLength;
  return (
    (typeof max === "number" && max > 200) ||
    LONG_NAMES.test(String(schema.title ?? "")) ||
    schema.contentMediaType !== undefined
  );
}

export type Option = { label: string; value: unknown };

/** `oneOf: [{const, title}, …]`, the way to give an enumeration titles. */
function choicesOfUnion(schema: JsonSchema): Option[] | null {
  const parts = schema.oneOf ?? schema.anyOf;
  if (!parts || parts.length === 0 || !parts.every((part) => "const" in asSchema(part))) return null;
  return parts.map((part) => ({ label: part.title ?? String(part.const), value: part.const }));
}

export function optionsOf(schema: JsonSchema): Option[] {
  if (!schema.enum) return choicesOfUnion(schema) ?? [];
  const names = Array.isArray(schema.enumNames) ? (schema.enumNames as unknown[]) : [];
  return schema.enum.map((value, index) => ({
    label: String(names[index] ?? (typeof value === "object" ? JSON.stringify(value) : value)),
    value,
  }));
}

/** A first value for what was added by a button. */
export function startValue(field: FormField): unknown {
  if (field.schema.default !== undefined) return structuredClone(field.schema.default);
  if (field.kind === "fixed") return field.schema.const;
  if (field.kind === "object") return {};
  if (field.kind === "array") return [];
  if (field.kind === "boolean") return false;
  return undefined;
}

/** The value with `next` at the path; undefined takes it out, and objects stay as they are beside it. */
export function setAt(value: unknown, path: Path, next: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return next;
  if (typeof key === "number") {
    const list = Array.isArray(value) ? [...(value as unknown[])] : [];
    list[key] = setAt(list[key], rest, next);
    return list;
  }
  const object =
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? { ...(value as Record<string, unknown>) }
      : {};
  const inner = setAt(object[key], rest, next);
  if (inner === undefined) delete object[key];
  else object[key] = inner;
  return object;
}
