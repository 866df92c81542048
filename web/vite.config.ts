import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// For development beside a daemon: SUBAGENTS_URL is its daemon.http_port, SUBAGENTS_TOKEN_FILE the
// operator's token. The built page needs neither: the daemon serves it and knows it by its cookie.
const daemon = process.env["SUBAGENTS_URL"] ?? "http://127.0.0.1:7777";
const tokenFile = process.env["SUBAGENTS_TOKEN_FILE"];
const token = tokenFile === undefined ? undefined : readFileSync(tokenFile, "ascii").trim();
const proxy = {
  target: daemon,
  changeOrigin: true,
  headers: {
    origin: daemon,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  },
};

export default defineConfig({
  // Below the path where the daemon serves it.
  base: "/ui/",
  plugins: [react()],
  worker: { format: "es" },
  build: {
    target: "es2023",
    // A small picture as a data: address would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": proxy, "/version": proxy, "/openapi.json": proxy, "/readyz": proxy } },
});
