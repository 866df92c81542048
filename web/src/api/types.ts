// The documents of the daemon's API by their own names. Types only: nothing is kept twice.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type AgentList = Schemas["AgentList"];
export type Attempt = Schemas["Attempt"];
export type Attention = Schemas["Attention"];
export type AttentionItem = Schemas["AttentionItem"];
export type BudgetState = Schemas["BudgetState"];
export type Check = Schemas["Check"];
export type ConfiguredAgent = Schemas["ConfiguredAgent"];
export type DaemonVersion = Schemas["DaemonVersion"];
export type Diagnostics = Schemas["Diagnostics"];
export type EffectiveConfig = Schemas["EffectiveConfig"];
export type Inbox = Schemas["Inbox"];
export type LogLine = Schemas["LogLine"];
export type LogPage = Schemas["LogPage"];
export type Message = Schemas["Message"];
export type Outcome = Schemas["Outcome"];
export type PlanDetail = Schemas["PlanDetail"];
export type PlanPage = Schemas["PlanPage"];
export type PlanReceipt = Schemas["PlanReceipt"];
export type Rate = Schemas["Rate"];
export type RunDetail = Schemas["RunDetail"];
export type RunNode = Schemas["RunNode"];
export type RunPage = Schemas["RunPage"];
export type RunRow = Schemas["RunRow"];
export type RunStatus = Schemas["RunStatus"];
export type SpawnReceipt = Schemas["SpawnReceipt"];
export type StoredResult = Schemas["StoredResult"];
export type Suggestions = Schemas["Suggestions"];
export type Timeline = Schemas["Timeline"];
export type TimelineEvent = Schemas["TimelineEvent"];
export type TrackRecords = Schemas["TrackRecords"];
export type Usage = Schemas["Usage"];
export type Why = Schemas["Why"];
export type WorkerRequest = Schemas["WorkerRequest"];
export type Workspace = Schemas["Workspace"];
