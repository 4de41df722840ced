// URI templates as far as MCP servers use them: `{name}` and its kin.

const VARIABLE = /\{([+#./;?&]?)([^}]+)\}/g;

export function variablesOf(template: string): string[] {
  const names = [...template.matchAll(VARIABLE)].flatMap((match) =>
    match[2]!.split(",").map((name) => name.replace(/\*|:\d+/g, "").trim()),
  );
  return [...new Set(names)];
}

/** The address with the variables filled in; `+` and `#` keep slashes as they are. */
export function expand(template: string, values: Record<string, string>): string {
  return template.replace(VARIABLE, (_whole, operator: string, list: string) => {
    const names = list.split(",").map((name) => name.replace(/\*|:\d+/g, "").trim());
    const encode = operator === "+" || operator === "#" ? encodeURI : encodeURIComponent;
    const given = names.filter((name) => values[name]);
    if (operator === "?" || operator === "&")
      return given.map((name, index) => `${index === 0 ? operator : "&"}${name}=${encode(values[name]!)}`).join("");
    if (operator === ";") return given.map((name) => `;${name}=${encode(values[name]!)}`).join("");
    const separator = operator === "/" || operator === "." ? operator : ",";
    const prefix = operator === "/" || operator === "." || operator === "#" ? operator : "";
    return given.length === 0 ? "" : prefix + given.map((name) => encode(values[name]!)).join(separator);
  });
}
