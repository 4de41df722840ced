// A client of the official TypeScript SDK that speaks to a Streamable HTTP server through `cofer proxy`:
// lists the tools, calls each with arguments that fit its schema, and accepts what it is asked with the
// schema's defaults. Arguments: MODULES COFER URL; the revision is in MCP_CONFORMANCE_PROTOCOL_VERSION.
const { createRequire } = require("node:module");

const [modules, cofer, url] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const { Client } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");

const MODERN = "2026-07-28";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

/** A value that fits a schema. */
function example(schema, key) {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "number":
    case "integer":
      return 5;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return examples(schema);
    default:
      return `a ${key}`;
  }
}

function examples(schema) {
  const wanted = Object.entries(schema?.properties ?? {});
  return Object.fromEntries(wanted.map(([key, of]) => [key, example(of, key)]));
}

/** What a person accepts who changes nothing: the defaults. */
function defaults(schema) {
  const given = Object.entries(schema?.properties ?? {}).filter(([, of]) => of.default !== undefined);
  return Object.fromEntries(given.map(([key, of]) => [key, of.default]));
}

async function main() {
  const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === MODERN;
  const client = new Client(
    { name: "through-proxy", version: "1" },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } }, roots: {}, sampling: {} },
      versionNegotiation: { mode: modern ? { pin: MODERN } : "legacy" },
    },
  );
  client.setRequestHandler("elicitation/create", async ({ params }) => ({
    action: "accept",
    content: defaults(params.requestedSchema),
  }));
  client.setRequestHandler("roots/list", async () => ({ roots: [] }));
  const args = ["proxy", "--no-auth", "--url", url];
  await client.connect(new StdioClientTransport({ command: cofer, args, stderr: "inherit" }));
  const { tools } = await client.listTools();
  // What a scenario wants to be called comes with it; otherwise each tool once. One that asks for a
  // schema gets that of the first tool, as it came.
  const argumentsFor = ({ inputSchema }) =>
    inputSchema?.properties?.schema ? { schema: tools[0].inputSchema } : examples(inputSchema);
  const calls = context.toolCalls ?? tools.map((tool) => ({ name: tool.name, arguments: argumentsFor(tool) }));
  for (const call of calls) {
    try {
      await client.callTool(call);
    } catch (error) {
      console.error(`${call.name}: ${error.message}`);
    }
  }
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
