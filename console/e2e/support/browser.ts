// Chromium, one for each test file, and pages in it that remember whatever went wrong on them.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, type Page, chromium } from "playwright-core";
import type { Daemon } from "./daemon";
import { CHROMIUM, FAILURES } from "./places";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];
/** Long, because a busy machine is slow; a wait ends as soon as it is over. */
export const PATIENCE = 60_000;

let browser: Promise<Browser> | null = null;

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = null;
}

export type PageOptions = {
  lang?: "en" | "ja";
  theme?: "light" | "dark";
  viewport?: { width: number; height: number };
  touch?: boolean;
  /** Problems that the test itself causes, such as requests to a daemon that it killed. */
  forgive?: RegExp;
  /** Without the token: as a browser that was never here. */
  stranger?: boolean;
};

/** A page of the console and what was wrong on it. */
export type Visit = { page: Page; problems: string[] };

/** Opens a page of the console in a fresh profile, signed in by the link's fragment. */
export async function visit(daemon: Daemon, path: string, options: PageOptions = {}): Promise<Visit> {
  browser ??= chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  const { viewport = { width: 1280, height: 900 }, touch = false, theme = "light", lang = "en" } = options;
  const settings: BrowserContextOptions = {
    baseURL: daemon.url,
    viewport,
    hasTouch: touch,
    colorScheme: theme,
    reducedMotion: "reduce",
    locale: lang === "ja" ? "ja-JP" : "en-US",
    timezoneId: "Asia/Tokyo",
  };
  const context = await (await browser).newContext(settings);
  context.setDefaultTimeout(PATIENCE);
  await context.addInitScript(reportViolations);
  const page = await context.newPage();
  const problems: string[] = [];
  listen(page, problems, options.forgive);
  await page.goto(options.stranger ? path : `${path}#token=${daemon.token}`);
  return { page, problems };
}

/** In the page: what the content security policy refused becomes an error like any other. */
function reportViolations(): void {
  document.addEventListener("securitypolicyviolation", (event) => {
    console.error(`content security policy: ${event.effectiveDirective} refused ${event.blockedURI} ${event.sample}`);
  });
}

function listen(page: Page, problems: string[], forgive?: RegExp): void {
  const note = (problem: string) => {
    // Chromium gives up what it loads when a network of the machine comes or goes, such as a
    // container's; the page asks again.
    if (problem.includes("net::ERR_NETWORK_CHANGED") || forgive?.test(problem)) return;
    problems.push(problem);
  };
  page.on("pageerror", (error) => note(`uncaught: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    // Chromium reports every answer of 400 and more; those of the API are answers like others.
    if (
      message.text().startsWith("Failed to load resource: the server responded") &&
      message.location().url.includes("/api/v1/")
    )
      return;
    note(`${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText ?? "";
    // A request that the page itself gave up.
    if (why === "net::ERR_ABORTED") return;
    note(`request failed: ${request.url()} ${why}`);
  });
}

export async function picture({ page }: Visit, name: string): Promise<string> {
  mkdirSync(FAILURES, { recursive: true });
  const path = join(FAILURES, `${name.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 100)}.png`);
  await page.screenshot({ path, fullPage: true });
  return path;
}
