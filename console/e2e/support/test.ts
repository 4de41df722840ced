// The test function of the suite: a daemon for each test, pages that have to be without an error.
import type { Page } from "playwright-core";
import { test as base, expect } from "vitest";
import { PATIENCE, type PageOptions, type Visit, picture, visit } from "./browser";
import { Daemon } from "./daemon";

type Fixtures = {
  daemon: Daemon;
  /** Opens a page of the console. When the test ends, nothing may have gone wrong on it. */
  open: (path?: string, options?: PageOptions) => Promise<Page>;
};

export const test = base.extend<Fixtures>({
  // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of the fixtures from here
  daemon: async ({}, use) => {
    const daemon = await Daemon.start();
    try {
      await use(daemon);
    } finally {
      await daemon.stop();
    }
  },
  open: async ({ daemon, task }, use) => {
    const visits: Visit[] = [];
    await use(async (path = "/", options = {}) => {
      const opened = await visit(daemon, path, options);
      visits.push(opened);
      return opened.page;
    });
    if (task.result?.state === "fail") {
      for (const [index, opened] of visits.entries()) await picture(opened, `${task.name}-${index}`).catch(() => null);
    }
    const problems = visits.flatMap((opened) => opened.problems);
    await Promise.all(visits.map(({ page }) => page.context().close()));
    expect(problems, "errors on the page").toEqual([]);
  },
});

/** Waits until `read` gives what is expected. */
export function until<T>(read: () => T | Promise<T>) {
  return expect.poll(read, { timeout: PATIENCE, interval: 50 });
}

export { expect };
