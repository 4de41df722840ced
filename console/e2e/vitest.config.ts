// The browser suite: the real daemon, real MCP servers, the distribution's Chromium.
// Run by scripts/test-console, which says where everything is.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    environment: "node",
    globalSetup: ["e2e/support/requirements.ts"],
    setupFiles: ["e2e/support/setup.ts"],
    // Long, because a busy machine is slow: every wait ends as soon as what it waits for is there.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    reporters: ["default"],
  },
});
