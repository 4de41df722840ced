// axe on a page: WCAG 2.2 A and AA, and its own best practices.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

type Finding = { id: string; help: string; nodes: { target: string[]; failureSummary?: string }[] };

/** What axe finds on the page as it is now, in words. */
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async (tags) => {
    const axe = (
      window as unknown as { axe: { run: (where: Document, options: object) => Promise<{ violations: Finding[] }> } }
    ).axe;
    return (await axe.run(document, { runOnly: tags })).violations;
  }, TAGS);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id} (${help}): ${node.target.join(" ")} ${node.failureSummary ?? ""}`),
  );
}
