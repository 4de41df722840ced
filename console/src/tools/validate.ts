// Checks arguments against a tool's schema and says what is wrong where, in words.
import { type OutputUnit, type Schema, type SchemaDraft, Validator } from "@cfworker/json-schema";
import type { TFunction } from "i18next";
import type { JsonSchema } from "../api/mcp";

/** Messages by place: `/path/to/0`, the empty text for the whole. */
export type Problems = Partial<Record<string, string>>;

export function validate(schema: JsonSchema, value: unknown, t: TFunction): Problems {
  let errors: OutputUnit[];
  try {
    errors = new Validator(schema as Schema, draftOf(schema), false).validate(clean(value)).errors;
  } catch {
    // A schema that cannot be read forbids nothing: the server has the last word.
    return {};
  }
  const problems: Problems = {};
  for (const error of errors) {
    const found = read(error, schema, t);
    if (found) problems[found.place] ??= found.message;
  }
  return problems;
}

const draftOf = (schema: JsonSchema): SchemaDraft =>
  (/draft-0?([47])/.exec(String(schema.$schema))?.[1] ?? "2020-12") as SchemaDraft;

/** What JSON would make of it: no undefined in it. */
const clean = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

/** Those keywords only say that something inside them failed. */
const OUTER = new Set([
  "properties",
  "items",
  "prefixItems",
  "$ref",
  "allOf",
  "anyOf",
  "oneOf",
  "if",
  "then",
  "else",
  "patternProperties",
  "dependentSchemas",
  "not",
]);
const LIMITS = [
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minItems",
  "maxItems",
  "pattern",
  "format",
  "multipleOf",
] as const;

function read(error: OutputUnit, schema: JsonSchema, t: TFunction): { place: string; message: string } | null {
  const place = placeOf(error.instanceLocation);
  const { keyword } = error;
  if (keyword === "required") {
    const name = /property "(.*)"/.exec(error.error)?.[1] ?? "";
    return { place: `${place}/${name}`, message: t("run.problems.required") };
  }
  if (keyword === "anyOf" || keyword === "oneOf") return { place, message: t("run.problems.other") };
  if (OUTER.has(keyword) || error.error === "False boolean schema.") return null;
  if (keyword === "additionalProperties" || keyword === "unevaluatedProperties") {
    const name = /Property "(.*?)"/.exec(error.error)?.[1];
    return { place: name ? `${place}/${name}` : place, message: t("run.problems.additionalProperties") };
  }
  if (keyword === "type")
    return { place, message: t("run.problems.type", { expected: String(limitOf(schema, error) ?? "") }) };
  if (keyword === "enum" || keyword === "const") return { place, message: t("run.problems.enum") };
  const known = LIMITS.find((word) => word === keyword);
  if (known) {
    const limit = limitOf(schema, error);
    return { place, message: t(`run.problems.${known}`, { limit: String(limit ?? ""), count: Number(limit) }) };
  }
  return { place, message: t("run.problems.other") };
}

const placeOf = (location: string) =>
  location
    .replace(/^#/, "")
    .split("/")
    .map((part) => decodeURIComponent(part))
    .join("/");

/** The value of the keyword that failed, found by its place in the schema. */
function limitOf(schema: JsonSchema, error: OutputUnit): unknown {
  let at: unknown = schema;
  for (const part of error.keywordLocation.replace(/^#\/?/, "").split("/")) {
    if (part === "$ref" || typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string, unknown>)[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return at;
}

export function firstProblem(problems: Problems): string | null {
  const entry = Object.entries(problems)[0];
  return entry ? `${entry[0].slice(1) || "result"}: ${entry[1]}` : null;
}
