import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/lists.css";
import "./styles/run.css";
import "./styles/charts.css";
import "./live/preferences";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { App } from "./app";
import { logIn } from "./api/login";
import { Boundary } from "./components/boundary";
import { usePath, useSearch } from "./live/address";
import { startKeys } from "./live/keys";
import { queries, startLive } from "./live/live";

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");

startKeys();
const problem = await logIn();
if (problem === null) startLive();
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Router base={import.meta.env.BASE_URL.replace(/\/$/, "")} hook={usePath} searchHook={useSearch}>
        <Boundary>
          <App problem={problem} />
        </Boundary>
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);
