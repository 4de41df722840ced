// Writes src/api/schema.ts from the daemon's OpenAPI, or with --check says whether it is current.
// Own and small, because openapi-typescript does not run with TypeScript 7.
import { readFileSync, writeFileSync } from "node:fs";

const SOURCE = new URL("../../openapi/cofer.json", import.meta.url);
const TARGET = new URL("../src/api/schema.ts", import.meta.url);

const quote = (text) => JSON.stringify(text);
const comment = (text, indent) =>
  text ? `${indent}/** ${text.replace(/\s+/g, " ").replaceAll("*/", "* /")} */\n` : "";

/** The TypeScript type of a JSON schema. */
function typeOf(schema, indent = "  ") {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map(quote).join(" | ");
  const union = schema.oneOf ?? schema.anyOf;
  if (union) return union.map((part) => typeOf(part, indent)).join(" | ");
  if (schema.allOf) return schema.allOf.map((part) => typeOf(part, indent)).join(" & ");
  const types = [schema.type ?? []].flat();
  if (types.length === 0) return "unknown";
  return types.map((type) => plainType(type, schema, indent)).join(" | ");
}

function plainType(type, schema, indent) {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `(${typeOf(schema.items ?? {}, indent)})[]`;
    case "object":
      return objectType(schema, indent);
    default:
      throw new Error(`a JSON schema type that this generator does not know: ${type}`);
  }
}

function objectType(schema, indent) {
  if (!schema.properties)
    return `Record<string, ${schema.additionalProperties ? typeOf(schema.additionalProperties) : "unknown"}>`;
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(
    ([name, field]) =>
      `${comment(field.description, indent)}${indent}${name}${required.has(name) ? "" : "?"}: ${typeOf(field, `${indent}  `)};\n`,
  );
  return `{\n${fields.join("")}${indent.slice(2)}}`;
}

function generate(api) {
  const head = "// The nouns of the daemon's API. Made by `npm run types` from openapi/cofer.json; not to be edited.\n";
  const types = Object.entries(api.components.schemas).map(
    ([name, schema]) => `\n${comment(schema.description, "")}export type ${name} = ${typeOf(schema)};\n`,
  );
  return head + types.join("");
}

const text = generate(JSON.parse(readFileSync(SOURCE, "utf8")));
if (process.argv.includes("--check")) {
  if (readFileSync(TARGET, "utf8") !== text) {
    process.stderr.write("src/api/schema.ts is not what openapi/cofer.json says: run `npm run types`\n");
    process.exitCode = 1;
  }
} else {
  writeFileSync(TARGET, text);
}
