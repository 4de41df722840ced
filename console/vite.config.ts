// How the console is built: hashed files in dist/, nothing inlined, because the daemon serves it
// under a content security policy that refuses inline scripts and styles.
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** What the first page needs, in three files instead of thirty. What is not named here goes into
 *  the file of the page that needs it. */
const FIRST_PAGE = [
  {
    name: "vendor",
    test: /node_modules\/(?:react|react-dom|scheduler|@tanstack\/(?:query-core|react-query)|i18next|react-i18next|wouter|regexparam|use-sync-external-store)\//,
  },
  { name: "icons", test: /node_modules\/lucide-react\// },
  {
    name: "console",
    test: /src\/(?:api|shell\/(?!help)|settings\/preferences|servers\/(?:[^/]*\.tsx?$)(?<!(?:server-page|settings-tab|server-head|delete-dialog|not-connected)\.tsx)|ui\/(?!modal|confirm|tabs|virtual-list|json-view|download)|activity\/outcome|i18n\/(?:en|index))/,
  },
];

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: {
    alias: {
      "decode-named-character-reference": fileURLToPath(new URL("src/chat/character-names.ts", import.meta.url)),
    },
  },
  build: {
    outDir: "dist",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
    rolldownOptions: { output: { codeSplitting: { groups: FIRST_PAGE } } },
  },
  server: {
    proxy: {
      "/api": process.env.COFER_URL ?? "http://127.0.0.1:8787",
      "/healthz": process.env.COFER_URL ?? "http://127.0.0.1:8787",
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test/setup.ts"],
    restoreMocks: true,
    // Long, because a busy machine is slow: every wait ends as soon as what it waits for is there.
    testTimeout: 120_000,
  },
});
