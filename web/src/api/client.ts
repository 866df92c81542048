// Calls of the daemon. Same origin, its cookie, JSON both ways; what is wrong comes as a Problem.

import type { OwnLogin } from "./types";
import { heardTime } from "../live/clock";

/** Why a call was not done, in the daemon's words (RFC 9457). */
export class Problem extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly status: number,
    readonly hint: string | null,
    readonly details: Record<string, unknown>,
  ) {
    super(message);
  }
}

let csrf: string | null = null;

/** What every call that changes something has to bring; null = nothing. */
export function setCsrf(value: string | null): void {
  csrf = value;
}

export type Query = Record<string, string | number | boolean | null | undefined>;

/** `/v1/runs?limit=50`; what is null, undefined or false is left out. */
export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== false);
  const text = new URLSearchParams(given.map(([name, value]) => [name, value === true ? "1" : String(value)]));
  return given.length === 0 ? path : `${path}?${text}`;
}

/** The path of one run; `sel` may hold anything. */
export function runPath(sel: string, part = ""): string {
  return `/v1/runs/${encodeURIComponent(sel)}${part && `/${part}`}`;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await request("GET", address(path, query), undefined, signal);
  const found = (await response.json()) as T & { nowAt?: unknown };
  if (typeof found.nowAt === "string") heardTime(found.nowAt);
  return found;
}

export async function post<T>(path: string, body?: unknown): Promise<T> {
  const response = await request("POST", path, body);
  return (await response.json()) as T;
}

export async function remove<T>(path: string): Promise<T> {
  const response = await request("DELETE", path);
  return (await response.json()) as T;
}

export async function text(path: string, query: Query = {}): Promise<string> {
  return (await request("GET", address(path, query))).text();
}

/** Any call.
 *
 * @throws Problem Nobody answered (`unreachable`), or the daemon said why not.
 */
export async function request(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(csrf === null || method === "GET" ? {} : { "x-subagents-csrf": csrf }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem("the daemon does not answer", "unreachable", 0, null, {});
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.details["guardrail"] !== "csrf") throw problem;
  // This browser logged in anew, in another tab: its cookie is another one, and so is what goes with it.
  const fresh = (await get<OwnLogin>("/v1/login")).csrf;
  if (fresh === csrf) throw problem;
  setCsrf(fresh);
  return request(method, path, body, signal, headers);
}

async function problemOf(response: Response): Promise<Problem> {
  let found: Record<string, unknown> = {};
  try {
    found = (await response.json()) as Record<string, unknown>;
  } catch {
    // Something between us and the daemon answered; its status says as much as it knows.
  }
  const message = found["message"] ?? found["detail"] ?? `it was answered with ${response.status}`;
  return new Problem(
    String(message),
    String(found["code"] ?? "unknown"),
    response.status,
    typeof found["hint"] === "string" ? found["hint"] : null,
    (found["details"] as Record<string, unknown> | undefined) ?? {},
  );
}
