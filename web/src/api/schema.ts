// Written by `npm run types` from the daemon's OpenAPI document.
export interface paths {
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** newest first; an agent sees its own tree */
        get: operations["run_routes_list_runs"];
        put?: never;
        /** one run, or the first one of the same idempotency key */
        post: operations["spawn_routes_spawn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** what the same call of POST /v1/runs would come to; starts nothing */
        post: operations["spawn_routes_dry_spawn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** newest first; an agent sees its own */
        get: operations["plan_routes_list_plans"];
        put?: never;
        /** all of the runs or none; they name each other by label */
        post: operations["spawn_routes_spawn_plan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * what the same call of POST /v1/plans would come to; starts nothing
         * @description A refusal of several runs names all of them in the details (``problems``).
         */
        post: operations["spawn_routes_dry_plan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans/{sel}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** the steps that failed, and those that waited for them */
        post: operations["spawn_routes_retry_plan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** a new run from the stored parameters */
        post: operations["spawn_routes_retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans/{sel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** how it stands, and its steps */
        get: operations["plan_routes_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans/{sel}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** every step that has not ended */
        post: operations["plan_routes_cancel"];
        /** take planned cancels of its steps back, where it can be */
        delete: operations["plan_routes_withdraw_cancel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** all of them, oldest first */
        get: operations["schedule_routes_list_schedules"];
        put?: never;
        /** start this work at these times, from now on */
        post: operations["schedule_routes_add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{sel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** by name or id, with what became of its newest times */
        get: operations["schedule_routes_show"];
        put?: never;
        post?: never;
        /** it starts nothing more; its runs go on */
        delete: operations["schedule_routes_remove"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{sel}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** it starts nothing until it is resumed */
        post: operations["schedule_routes_pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{sel}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** it goes on with the next time that is due */
        post: operations["schedule_routes_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{sel}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** start its work now, besides its times */
        post: operations["schedule_routes_run_now"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the trees whose root fits the search; an agent sees those it asked for */
        get: operations["run_routes_roots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** everything, but at most 4,000 characters of the result */
        get: operations["run_routes_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the row, and what its worker was last seen at */
        get: operations["run_routes_status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the result and what proves it; of a long result the end */
        get: operations["run_routes_result"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/result/text": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the whole result as plain UTF-8, or a range of its bytes */
        get: operations["run_routes_result_text"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the run and all below it */
        get: operations["run_routes_tree"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** a page of events, each with the phase after it */
        get: operations["run_routes_timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** one sentence for now, one line per event, every delivery try */
        get: operations["run_routes_why"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * lines of its transcript, or with ``summary=1`` a digest
         * @description With ``afterSeq`` and ``waitSeconds`` the line is held until there is something behind it.
         */
        get: operations["run_routes_log"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * the durable intent; a run that ended says so
         * @description With ``after`` it is planned, also over a restart; until then it can be taken back.
         */
        post: operations["run_routes_cancel"];
        /** take a planned cancel back; harmless where there is none */
        delete: operations["run_routes_withdraw_cancel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/steer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** a message for the worker, now or for its next turn */
        post: operations["run_routes_steer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** pause */
        post: operations["run_routes_pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/priority": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** its place among those that wait for a slot */
        post: operations["run_routes_prioritize"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** resume */
        post: operations["run_routes_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** give a result that was read, or given up, once more */
        post: operations["run_routes_redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/dismiss": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** its escalation was dealt with; take it from attention */
        post: operations["run_routes_dismiss"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/artifacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the files that its contract and its report name */
        get: operations["artifact_routes_artifacts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/artifacts/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * one of these files, or a range of its bytes
         * @description Always as a download of no type: what a worker wrote is never shown by a browser by itself.
         */
        get: operations["artifact_routes_content"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** what it changed in its worktree, as git shows it */
        get: operations["artifact_routes_diff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/send": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** a message for the session of a run, whoever works in it now */
        post: operations["session_routes_send"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/interrupt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * end its turn; what it has so far is its partial result
         * @description With ``after`` it is planned, also over a restart; until then it can be taken back, and nothing comes of it when the turn has ended by then.
         */
        post: operations["session_routes_interrupt"];
        /** take a planned interrupt back; harmless where none is */
        delete: operations["session_routes_withdraw_interrupt"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/threads/{thread}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * what somebody wrote in the conversation outside
         * @description It is put into the live turn of the thread's session, or starts the run that continues it. The answer comes by the courier that the thread's agent is bound to.
         */
        post: operations["session_routes_thread_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * hold the line until any or all of the runs ended, at most 600 s
         * @description Never an error on timeout. What ended is offered to the reader of this call; acknowledging consumes it.
         */
        post: operations["inbox_routes_wait"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/inbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * unread messages, with ``all=1`` the read ones too; takes nothing
         * @description ``awaited`` marks what a call under way, or a client that polls, is about to bring.
         */
        get: operations["inbox_routes_look_at_inbox"];
        put?: never;
        /** offer unread messages to this reader; acknowledging consumes them */
        post: operations["inbox_routes_take_inbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/inbox/ack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** consume messages, and give others back; repeating is harmless */
        post: operations["inbox_routes_acknowledge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/attention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** what needs a person; the operator sees everybody's */
        get: operations["inbox_routes_attention"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** a question for the requester, durable on return */
        post: operations["inbox_routes_ask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the question, after waiting ``waitSeconds`` for its answer */
        get: operations["inbox_routes_answer_of"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests/{id}/respond": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * the first answer counts
         * @description A later one is a conflict, whose details say who answered, when and what; but not the same answer once more, from a client that did not hear of its success.
         */
        post: operations["inbox_routes_respond"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** the worker's claim of completion; the last one counts */
        post: operations["inbox_routes_report"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/progress": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the updates that were kept, oldest first, at most 100 */
        get: operations["inbox_routes_progress_of"];
        put?: never;
        /** at most one per 30 s; being too early is no error */
        post: operations["inbox_routes_progress"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/notify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** one way, into the requester's inbox */
        post: operations["inbox_routes_notify"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{sel}/hold": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** before a request to the model; holds the line up to 20 s */
        post: operations["inbox_routes_hold"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the tools that the caller is shown, with their tool_schemas */
        get: operations["tool_routes_list_tools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** call one; the body is its arguments, nothing is the empty object */
        post: operations["tool_routes_use_tool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the configured workers, and whether the caller may spawn them */
        get: operations["agent_routes_agents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** what ended attempts came to */
        get: operations["agent_routes_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/stats/series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** what ended attempts came to over time */
        get: operations["agent_routes_series"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/suggest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** who fits; starts nobody */
        get: operations["agent_routes_suggestions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the process answers; nothing else is looked at */
        get: operations["daemon_routes_healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** 200 when new runs are accepted, else 503 with the reason */
        get: operations["daemon_routes_readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** version */
        get: operations["daemon_routes_version"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** every effective value and where it came from; secrets are hidden */
        get: operations["daemon_routes_config"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sweep": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** the recovery pass, now */
        post: operations["daemon_routes_sweep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/diagnostics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** what ``doctor`` shows of the running daemon */
        get: operations["daemon_routes_diagnostics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/shutdown": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** stop serving; workers continue, the next daemon adopts them */
        post: operations["daemon_routes_shutdown"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** an agent hears of its own tree, the operator of everything */
        get: operations["event_routes_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * alerts that were raised, newest first, and what became of each
         * @description An agent sees those of the runs it asked for.
         */
        get: operations["event_routes_alerts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** this document */
        get: operations["openapi_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the nodes that share the database, and what each decides about */
        get: operations["cluster_routes_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** this node gives its partitions to others; its workers go on */
        post: operations["cluster_routes_drain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** with what rights this call is made, and what its writes must bring */
        get: operations["login_routes_own_login"];
        put?: never;
        /** a code for a cookie; over TCP, from our own page */
        post: operations["login_routes_log_in"];
        /** the login that this call was made with is over */
        delete: operations["login_routes_log_out"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/login/codes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * what opens the page in a browser, once, within a minute
         * @description Opens a TCP port on loopback when there is none yet.
         */
        post: operations["login_routes_make_code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/logins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** every browser that is logged in */
        get: operations["login_routes_list_logins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/logins/{login}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** it is over at once, with all that its page has open */
        delete: operations["login_routes_revoke"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** the steps of a plan, or a tree, with what waits for what */
        get: operations["graph_routes_graph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** counters and gauges in Prometheus' text format */
        get: operations["metrics_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** AckBody */
        AckBody: {
            messageIds: string[];
            /**
             * @description Stay unread: the next reader is offered them at once
             * @default []
             */
            release: string[];
        };
        /** AskBody */
        AskBody: {
            /**
             * @description What the requester must know
             * @default null
             */
            context: string | null;
            /**
             * @description Possible answers
             * @default []
             */
            options: string[];
            /**
             * @description How long the question stands; default until it is answered
             * @default null
             */
            timeoutSeconds: number | null;
            /**
             * @description Taken when nobody answers in time
             * @default null
             */
            defaultAnswer: string | null;
            runId: string;
            question: string;
        };
        /**
         * CancelBody
         * @description Of a cancel and of an interrupt.
         */
        CancelBody: {
            /** @default null */
            reason: string | null;
            /** @default null */
            after: string | null;
        };
        /**
         * CodeBody
         * @description What the login that a code is for may do.
         */
        CodeBody: {
            /** @default operator */
            role: string;
        };
        /**
         * DrainBody
         * @description Whether this node gives its partitions away and takes no more.
         */
        DrainBody: {
            /** @default true */
            on: boolean;
        };
        /**
         * HoldBody
         * @description What a worker's next request to its model may use, and what it used so far.
         */
        HoldBody: {
            inputTokens: number;
            outputTokens: number;
            /** @default 1 */
            leastOutputTokens: number;
            /** @default null */
            inputUsd: number | null;
            /** @default null */
            outputTokenUsd: number | null;
            /** @default null */
            tokensIn: number | null;
            /** @default null */
            tokensOut: number | null;
            /** @default null */
            costUsd: number | null;
            /** @default 0 */
            lostTokens: number;
            /** @default 0 */
            lostCostUsd: number;
            /** @default true */
            firm: boolean;
        };
        /** InboxBody */
        InboxBody: {
            /** @default 50 */
            limit: number;
            /** @default null */
            messageIds: string[] | null;
        };
        /**
         * LoginBody
         * @description The code that a page found behind the ``#`` of its address.
         */
        LoginBody: {
            code: string;
        };
        /** NotifyBody */
        NotifyBody: {
            message: string;
            /**
             * @default info
             * @enum {string}
             */
            priority: "info" | "question" | "blocker";
        };
        /** PlanBody */
        PlanBody: {
            specs: components["schemas"]["RunSpec"][];
            /** @default null */
            name: string | null;
            /** @default null */
            idempotencyKey: string | null;
            /** @default null */
            budget: components["schemas"]["PlanLimit"] | null;
            /** @default null */
            jobs: number | null;
            /** @default null */
            cwd: string | null;
            /** @default null */
            defaultAgent: string | null;
            /** @default {} */
            configEnv: {
                [key: string]: string;
            };
            /** @default {} */
            overrides: {
                [key: string]: unknown;
            };
            /** @default {} */
            environment: components["schemas"]["CallerEnvironment"];
            /** @default [] */
            stepEnvironments: {
                [key: string]: string;
            }[];
        };
        /**
         * RunSpec
         * @description The spawn parameters: the one declaration that every way to spawn is made from.
         */
        RunSpec: {
            /** @description What to do, complete in itself */
            task: string;
            /**
             * @description Short name that stands for its id
             * @default null
             */
            label: string | null;
            /**
             * @description Agent id, or auto
             * @default null
             */
            agentId: string | null;
            /**
             * @description Model, where its runtime takes one
             * @default null
             */
            model: string | null;
            /**
             * @description Thinking level, where one is taken
             * @default null
             */
            thinking: string | null;
            /**
             * @description Deadline of each attempt; 0 = none
             * @default null
             */
            runTimeoutSeconds: number | null;
            /**
             * @description Directory; default the caller's
             * @default null
             */
            cwd: string | null;
            /**
             * @description session: stays open for messages
             * @default null
             */
            mode: components["schemas"]["Mode"] | null;
            /**
             * @description Bind its session to a thread; mode=session needs it
             * @default false
             */
            thread: boolean;
            /**
             * @description delete: task, session, transcript go with its end
             * @default keep
             */
            cleanup: components["schemas"]["Cleanup"];
            /**
             * @description Push its end to you first, then queue it
             * @default true
             */
            expectsCompletionMessage: boolean;
            /**
             * @description Run (id or label) to start after
             * @default null
             */
            chainAfter: string | null;
            /**
             * @description Runs (id or label) to start after
             * @default []
             */
            dependsOn: string | string[];
            /**
             * @description Their results precede the task
             * @default false
             */
            includeDependencyResult: boolean;
            /**
             * @description When one fails
             * @default cancel
             */
            onDependencyFailure: components["schemas"]["OnDependencyFailure"];
            /**
             * @description Agent for fallback
             * @default null
             */
            fallbackAgentId: string | null;
            /**
             * @description A partial outcome will do
             * @default false
             */
            acceptPartialDependencies: boolean;
            /**
             * @description Longest wait for them; default none
             * @default null
             */
            dependencyTimeoutSeconds: number | null;
            /**
             * @description Attempts after a failure
             * @default 0
             */
            retryCount: number;
            /**
             * @description Before the first retry
             * @default 1000
             */
            retryDelay: number;
            /**
             * @description How the delay grows
             * @default exponential
             */
            retryBackoff: components["schemas"]["Backoff"];
            /**
             * @description Only errors with these texts
             * @default []
             */
            retryOn: string | string[];
            /**
             * @description No retry later than this
             * @default null
             */
            retryMaxTime: number | null;
            /**
             * @description What must be true before it counts as done; say it in the task too
             * @default null
             */
            verification: components["schemas"]["Contract"] | null;
            /**
             * @description Ask for a structured report
             * @default false
             */
            completionReport: boolean;
            /**
             * @description Ask for progress
             * @default false
             */
            progressReporting: boolean;
            /**
             * @description Only these tools
             * @default null
             */
            toolsAllow: string | string[] | null;
            /**
             * @description Not these, nor below it
             * @default []
             */
            toolsDeny: string | string[];
            /**
             * @description read, write (below cwd) or full
             * @default null
             */
            access: components["schemas"]["AccessLevel"] | null;
            /**
             * @description For the run and all below it
             * @default null
             */
            budget: components["schemas"]["Budget"] | null;
            /**
             * @description Slot pool
             * @default null
             */
            lane: string | null;
            /**
             * @description Node label
             * @default null
             */
            place: string | null;
            /**
             * @description Higher starts first
             * @default 0
             */
            priority: number;
            /**
             * @description To find it by
             * @default []
             */
            tags: string | string[];
            /**
             * @description worktree: its own; sandbox: sees only cwd
             * @default none
             */
            isolation: components["schemas"]["Isolation"];
            /**
             * @description Default host; none in a sandbox
             * @default null
             */
            network: components["schemas"]["Network"] | null;
            /**
             * @description The same key within 24 h: the same run
             * @default null
             */
            idempotencyKey: string | null;
            /**
             * @description Ended run whose session to continue, with task as the next message
             * @default null
             */
            continues: string | null;
        };
        /**
         * Mode
         * @enum {unknown}
         */
        Mode: "run" | "session";
        /**
         * Cleanup
         * @enum {unknown}
         */
        Cleanup: "delete" | "keep";
        /**
         * OnDependencyFailure
         * @enum {unknown}
         */
        OnDependencyFailure: "cancel" | "fallback" | "run";
        /**
         * Backoff
         * @enum {unknown}
         */
        Backoff: "exponential" | "fixed" | "linear";
        /**
         * Contract
         * @description What must be true of the output before anybody is told "done".
         */
        Contract: {
            /**
             * @description Files it must leave
             * @default []
             */
            artifacts: components["schemas"]["Artifact"][];
            /**
             * @description The worker must end with a completion report
             * @default false
             */
            requireCompletionReport: boolean;
            /**
             * @description Must exit 0; if the operator allows it
             * @default []
             */
            commands: string[];
            /**
             * @description Globs of which something changes
             * @default []
             */
            mustChange: string[];
            /**
             * @description Globs of which nothing changes
             * @default []
             */
            mustNotChange: string[];
            /**
             * @description false: files from before the work count
             * @default true
             */
            fresh: boolean;
            /**
             * @description What follows when a check fails
             * @default fail
             */
            onFailure: components["schemas"]["OnFailure"];
            /**
             * @description Longest time for all checks but the judge
             * @default 30000
             */
            verificationTimeoutMs: number;
            /**
             * @description Agent that judges last
             * @default null
             */
            judge: components["schemas"]["Judge"] | null;
        };
        /**
         * Artifact
         * @description One file the work must leave behind.
         */
        Artifact: {
            /** @description Path of the file, relative to cwd */
            path: string;
            /**
             * @description The file parses as JSON
             * @default false
             */
            json: boolean;
            /**
             * @description Of the top-level array; needs json
             * @default null
             */
            minItems: number | null;
            /**
             * @description Of each item; needs json
             * @default []
             */
            requiredKeys: string[];
            /**
             * @description The file has at least this size
             * @default null
             */
            minBytes: number | null;
            /**
             * @description JSON Schema it fits
             * @default null
             */
            schema: {
                [key: string]: unknown;
            } | boolean | null;
            /**
             * @description SHA-256 of the file, in hexadecimal
             * @default null
             */
            sha256: string | null;
            /**
             * @description RE2, found in it
             * @default null
             */
            regex: string | null;
            /**
             * @description JUnit XML without failures
             * @default false
             */
            junit: boolean;
            /**
             * @description Tests that ran; needs junit
             * @default null
             */
            minTests: number | null;
            /**
             * @description File that was modified before it
             * @default null
             */
            newerThan: string | null;
            /**
             * @description Makes path a glob
             * @default null
             */
            minFiles: number | null;
            /**
             * @description Makes path a glob
             * @default null
             */
            maxFiles: number | null;
            /**
             * @description It was written or changed by the work; default the contract's
             * @default null
             */
            fresh: boolean | null;
        };
        /**
         * OnFailure
         * @enum {unknown}
         */
        OnFailure: "escalate" | "fail" | "retry_once";
        /**
         * Judge
         * @description An agent that looks at finished work once all other checks have passed, and gives a verdict.
         */
        Judge: {
            /** @description Agent that judges */
            agentId: string;
            /** @description What it judges the work by */
            criteria: string;
            /**
             * @description Model, where its runtime takes one
             * @default null
             */
            model: string | null;
            /**
             * @description Deadline of its attempt
             * @default 600
             */
            runTimeoutSeconds: number;
            /**
             * @description What it may do, at most what the judged run may
             * @default read
             */
            access: components["schemas"]["AccessLevel"];
            /**
             * @description For the judge
             * @default null
             */
            budget: components["schemas"]["Budget"] | null;
            /**
             * @description Its own contract, without a judge
             * @default null
             */
            verification: components["schemas"]["Checks"] | null;
        };
        /**
         * AccessLevel
         * @description ``read`` < ``write`` < ``full``.
         * @enum {unknown}
         */
        AccessLevel: "full" | "read" | "write";
        /**
         * Budget
         * @description Caps the run and all its descendants together, attempts and retries included.
         */
        Budget: {
            /**
             * @description Tokens, with all below it
             * @default null
             */
            maxTokens: number | null;
            /**
             * @description Cost, with all below it
             * @default null
             */
            maxCostUsd: number | null;
            /**
             * @description Runs below it, itself included
             * @default null
             */
            maxRuns: number | null;
            /**
             * @description Time, with retries and waits
             * @default null
             */
            maxSeconds: number | null;
        };
        /**
         * Checks
         * @description What of a contract needs no agent to be checked.
         */
        Checks: {
            /**
             * @description Files it must leave
             * @default []
             */
            artifacts: components["schemas"]["Artifact"][];
            /**
             * @description The worker must end with a completion report
             * @default false
             */
            requireCompletionReport: boolean;
            /**
             * @description Must exit 0; if the operator allows it
             * @default []
             */
            commands: string[];
            /**
             * @description Globs of which something changes
             * @default []
             */
            mustChange: string[];
            /**
             * @description Globs of which nothing changes
             * @default []
             */
            mustNotChange: string[];
            /**
             * @description false: files from before the work count
             * @default true
             */
            fresh: boolean;
            /**
             * @description What follows when a check fails
             * @default fail
             */
            onFailure: components["schemas"]["OnFailure"];
            /**
             * @description Longest time for all checks but the judge
             * @default 30000
             */
            verificationTimeoutMs: number;
        };
        /**
         * Isolation
         * @enum {unknown}
         */
        Isolation: "none" | "sandbox" | "worktree";
        /**
         * Network
         * @enum {unknown}
         */
        Network: "host" | "none";
        /**
         * PlanLimit
         * @description What all runs of a plan, with those below them, may use together.
         */
        PlanLimit: {
            /** @default null */
            maxTokens: number | null;
            /** @default null */
            maxCostUsd: number | null;
        };
        /**
         * CallerEnvironment
         * @description What a caller brings.
         */
        CallerEnvironment: {
            /** @default {} */
            shell: {
                [key: string]: string;
            };
            /** @default {} */
            given: {
                [key: string]: string;
            };
            /** @default {} */
            provider: {
                [key: string]: string;
            };
            /** @default null */
            process: components["schemas"]["ProcessSettings"] | null;
        };
        /**
         * ProcessSettings
         * @description How processes run where it was called; a worker runs like that as far as the system lets it.
         */
        ProcessSettings: {
            /** @default 18 */
            umask: number;
            /** @default 0 */
            nice: number;
            /** @default [] */
            processors: number[];
            /** @default {} */
            limits: {
                [key: string]: [
                    number,
                    number
                ];
            };
        };
        /** PriorityBody */
        PriorityBody: {
            priority: number;
        };
        /** ProgressBody */
        ProgressBody: {
            /** @description Current step, in a few words */
            phase: string;
            /**
             * @description 0 to 100
             * @default null
             */
            percentComplete: number | null;
            /**
             * @description L0 what runs now, L1 the plan changed, L2 detail
             * @default null
             */
            level: string | null;
            /**
             * @description Names with text or number values
             * @default {}
             */
            metrics: {
                [key: string]: string | number;
            };
        };
        /**
         * Report
         * @description The worker's own claim of completion: evidence, never the outcome.
         */
        Report: {
            /** @description What was accomplished */
            summary: string;
            /** @default complete */
            status: components["schemas"]["ReportStatus"];
            /**
             * @description How sure you are of the result
             * @default null
             */
            confidence: components["schemas"]["Confidence"] | null;
            /**
             * @description Files you leave behind
             * @default []
             */
            artifacts: components["schemas"]["ReportedArtifact"][];
            /**
             * @description What stood in the way
             * @default []
             */
            blockers: string[];
            /**
             * @description What the requester should look at
             * @default []
             */
            warnings: string[];
        };
        /**
         * ReportStatus
         * @enum {unknown}
         */
        ReportStatus: "complete" | "failed" | "partial";
        /**
         * Confidence
         * @enum {unknown}
         */
        Confidence: "high" | "low" | "medium";
        /** ReportedArtifact */
        ReportedArtifact: {
            path: string;
            /** @default null */
            description: string | null;
        };
        /** RespondBody */
        RespondBody: {
            response: string;
            /**
             * @default answer
             * @enum {string}
             */
            decision: "answer" | "approve" | "deny";
        };
        /**
         * ScheduleBody
         * @description What to start, and at which times.
         */
        ScheduleBody: {
            name: string;
            when: string;
            specs: components["schemas"]["RunSpec"][];
            /** @default UTC */
            zone: string;
            /** @default skip */
            overlap: string;
            /** @default once */
            missed: string;
            /** @default false */
            replace: boolean;
            /** @default null */
            planName: string | null;
            /** @default null */
            budget: components["schemas"]["PlanLimit"] | null;
            /** @default null */
            jobs: number | null;
            /** @default null */
            cwd: string | null;
            /** @default null */
            defaultAgent: string | null;
            /** @default {} */
            environment: components["schemas"]["CallerEnvironment"];
            /** @default [] */
            stepEnvironments: {
                [key: string]: string;
            }[];
        };
        /** SendBody */
        SendBody: {
            message: string;
            /** @default either */
            mode: string;
            /** @default null */
            idempotencyKey: string | null;
        };
        /** SpawnBody */
        SpawnBody: {
            spec: components["schemas"]["RunSpec"];
            /** @default null */
            cwd: string | null;
            /** @default null */
            defaultAgent: string | null;
            /** @default {} */
            configEnv: {
                [key: string]: string;
            };
            /** @default {} */
            overrides: {
                [key: string]: unknown;
            };
            /** @default {} */
            environment: components["schemas"]["CallerEnvironment"];
        };
        /** SteerBody */
        SteerBody: {
            message: string;
        };
        /** ThreadBody */
        ThreadBody: {
            text: string;
            /** @default null */
            messageId: string | null;
        };
        /** WaitBody */
        WaitBody: {
            /** @default [] */
            runIds: string[];
            /**
             * @default any
             * @enum {string}
             */
            until: "any" | "all";
            /** @default 30 */
            timeoutSeconds: number;
            /** @default false */
            returnsOnNeeds: boolean;
        };
        /** @description See the tool's inputSchema. */
        Anything: Record<string, never>;
        /** @description Why a call did not succeed. */
        Problem: {
            /** @enum {string} */
            code: "already_answered" | "already_running" | "config_invalid" | "conflict" | "contract_invalid" | "corrupt_state" | "daemon_unreachable" | "elsewhere" | "error" | "fenced" | "forbidden" | "idempotency_conflict" | "illegal_transition" | "internal" | "invalid" | "node_over" | "node_unreachable" | "not_found" | "outcome_unknown" | "rate_limited" | "runtime_unavailable" | "store_unavailable" | "unauthorized" | "unavailable";
            message: string;
            details?: Record<string, never>;
            /** @description The same call can succeed later. */
            retryable?: boolean;
            hint?: string | null;
            /** @description The HTTP status; of a refused spawn `forbidden` or `error`. */
            status: number | string;
            /** @description Of a refused spawn: the message again. */
            error?: string;
        };
        /**
         * Acknowledged
         * @description What acknowledging came to.
         */
        Acknowledged: {
            /** @description So many messages were unread until now. */
            consumed: number;
        };
        /**
         * AgentList
         * @description The configured agents.
         */
        AgentList: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description Those that can work. */
            agents: components["schemas"]["ConfiguredAgent"][];
        };
        /**
         * Truncated
         * @description There are more than are shown.
         */
        Truncated: {
            /** @description So many are here. */
            shown: number;
            /** @description So many there are; counting ends at 1,000, or at the end of the page. */
            total: number;
            /** @description There are more than `total`. */
            totalIsBound: boolean;
        };
        /**
         * ConfiguredAgent
         * @description A configured agent: its card, its limits, and what its program can do.
         */
        ConfiguredAgent: {
            /** @description Its id. */
            id: string;
            /** @description The runtime that runs it; null = it only calls. */
            runtime: string | null;
            /** @description What it is for, at most 500 characters. */
            description: string | null;
            /** @description What it is good at. */
            tags: string[];
            /** @description `free`, `cheap`, `medium` or `expensive`. */
            costTier: string | null;
            /** @description How long it takes, in the operator's words. */
            typicalLatency: string | null;
            /** @description Which of `costTier` and `typicalLatency` its card leaves open, and its own attempts say. */
            measured: string[];
            /** @description What else to know, at most 500 characters. */
            notes: string | null;
            /** @description Whether the caller may spawn it. */
            allowed: boolean;
            /** @description What bounds a run of it. */
            limits: components["schemas"]["AgentLimits"];
            /** @description What its runtime can do; null = it cannot work as configured. */
            abilities: components["schemas"]["AgentAbilities"] | null;
            /** @description What the last probe of the installed version found. */
            probe: components["schemas"]["AgentProbe"] | null;
        };
        /**
         * AgentLimits
         * @description What bounds a run of an agent; null = nothing does.
         */
        AgentLimits: {
            /** @description The model it is started with. */
            model: string | null;
            /** @description After which a run is stopped. */
            runTimeoutSeconds: number | null;
            /** @description Whose slots its runs need. */
            lane: string;
            /** @description So many runs of that lane work at once. */
            laneSlots: number;
            /** @description The tools it may have; null = what its runtime offers. */
            tools: string[] | null;
            /** @description Whom it may spawn. */
            allowAgents: string[];
            /** @description How deep its runs may be. */
            maxSpawnDepth: number;
        };
        /**
         * AgentAbilities
         * @description What an agent's runtime says it can do.
         */
        AgentAbilities: {
            /** @description Its worker outlives the daemon. */
            survivesDaemon: boolean;
            /** @description It takes messages while it works. */
            steer: boolean;
            /** @description It continues its session. */
            resume: boolean;
            /** @description Its tools can be narrowed. */
            scopeTools: boolean;
            /** @description Its turn can be ended. */
            interrupt: boolean;
            /** @description It reports tokens or cost. */
            usage: boolean;
            /** @description It takes a model. */
            model: boolean;
        };
        /**
         * AgentProbe
         * @description What the last probe of an installed program found.
         */
        AgentProbe: {
            /** @description Of the program. */
            version: string | null;
            /** @description When. */
            probedAt: string | null;
            /** @description What was tried. */
            claims: components["schemas"]["ProbeClaim"][];
        };
        /**
         * ProbeClaim
         * @description Something that was tried with an installed program.
         */
        ProbeClaim: {
            /** @description What was tried: `scope`, `resume`, `steer`, … */
            name: string;
            /** @description `proven`, `broken` or `open`. */
            verdict: string;
            /** @description What was seen. */
            detail: string;
        };
        /**
         * AlertHistory
         * @description Alerts that were raised, newest first; `nextCursor` goes on behind the last one visited, also where a filter left few of them, or none.
         */
        AlertHistory: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description At most `limit`. */
            alerts: components["schemas"]["RaisedAlert"][];
        };
        /**
         * RaisedAlert
         * @description An alert that was raised, and what became of it.
         */
        RaisedAlert: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its number in the order of all events. */
            seq: number;
            /** @description `stuck`, `budget_alert`, …: see the alerts' page. */
            kind: string;
            /** @description In one line. */
            text: string;
            /** @description When it was raised. */
            occurredAt: string | null;
            /** @description The configured agent. */
            agentId: string;
            /** @description `sent`, `held` (the hour's allowance was used up), `off` (its kind is switched off), `escalated` (a blocker was sent in its place) or `late` (its run had ended). */
            fate: string;
            /** @description The same in words, and what follows from it. */
            why: string;
            /** @description The message that told of it: its own, or the digest in which it is counted; null = none. */
            messageId: string | null;
            /** @description When that was sent. */
            toldAt: string | null;
            /** @description When that was read, or marked as read; null = it was not. */
            readAt: string | null;
            /** @description Its cause is still there. */
            stands: boolean;
            /** @description As the stream told it, with its own fields. */
            event: components["schemas"]["StreamEvent"];
        };
        /**
         * StreamEvent
         * @description An event of the stream: `run` for each entry of a journal, or a structured one, with its own fields and no others.
         */
        StreamEvent: {
            /** @description In the order of all runs. */
            seq: number;
            /** @description `event` for a structured one, `row` with `rows=1`, else the name of the journal's entry. */
            type: string;
            /** @description The name of a structured event: `completion`, `stuck`, … */
            event?: string;
            /** @description Whose. */
            runId: string;
            /** @description Of the run. */
            label: string;
            /** @description Of a structured event the run's label, of `run` the configured agent. */
            agentId: string;
            /** @description When. */
            occurredAt: string | null;
            /** @description `run`: the session that asked for the run. */
            requester?: string;
            /** @description `run`: the run's phase now, not then. */
            phase?: string;
            /** @description `completion`: how it ended; `task_milestone`: `started` or `completed`. */
            status?: string;
            /** @description `completion`: why it is not plain `ok`. */
            reason?: string | null;
            /** @description `completion`: the same in words. */
            error?: string | null;
            /** @description `completion`: what the worker gave, cut. */
            result?: string | null;
            /** @description `completion`: of the whole result. */
            resultBytes?: number;
            /** @description `api_error`: what was said; `git_commit`: the commit's message. */
            message?: string;
            /** @description `api_error`: which try of the program it was. */
            retry?: number | boolean | null;
            /** @description `stuck`: for so long nothing was said. */
            silentMs?: number;
            /** @description `stuck`: what was seen last. */
            lastActivity?: string | null;
            /** @description `budget_alert`: used so far. */
            costUsd?: number | null;
            /** @description `budget_alert`: the limit. */
            budgetUsd?: number | null;
            /** @description `task_milestone`: the item of its plan. */
            task?: string;
            /** @description `task_milestone`: `2/5`. */
            progress?: string | null;
            /** @description `build_result`: what was run. */
            command?: string;
            /** @description `build_result`: whether it passed. */
            passed?: boolean;
            /** @description `build_result`: how many. */
            errors?: number | null;
            /** @description `build_result`: what it said in the end. */
            summary?: string | null;
            /** @description `context_pressure`: of the context window. */
            percent?: number;
            /** @description `context_pressure`: in the context. */
            tokens?: number | null;
            /** @description `subagent_spawn`, `git_commit`: how many. */
            count?: number;
            /** @description `subagent_spawn`: their team. */
            teamName?: string | null;
            /** @description `failure_loop`: one after the other. */
            consecutiveFailures?: number;
            /** @description `failure_loop`: the tool that failed. */
            lastTool?: string | null;
            /** @description `failure_loop`: how. */
            lastError?: string | null;
            /** @description `cc_message`: what the worker wrote to its requester. */
            text?: string;
            /** @description `cc_message`: `info`, `question` or `blocker`. */
            priority?: string;
            /** @description `row`: the run as it is now. */
            row?: components["schemas"]["RunRow"];
        };
        /**
         * RunRow
         * @description A run in a list.
         */
        RunRow: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description How it ended; null until then. */
            outcome: components["schemas"]["Outcome"] | null;
            /** @description The configured agent. */
            agentId: string;
            /** @description The session its newest attempt works in. */
            sessionKey: string;
            /** @description One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase. */
            runStatus: string;
            /** @description What its worker said last of how far it is. */
            latestProgress: components["schemas"]["Progress"] | null;
            /** @description Open questions of its worker. */
            pendingRequestCount: number;
            /** @description What its own attempts used; null when nobody reported anything. */
            usage: components["schemas"]["Usage"] | null;
            /** @description What it and everything below it used; null for a run without children. */
            subtreeUsage: components["schemas"]["TreeUsage"] | null;
            /** @description Why it is where it is, in one sentence. */
            why: string | null;
            /** @description Its contract was met before the work began: that it is met proves nothing. */
            vacuous: boolean;
            /** @description What it waits for, as data; null = nothing: it is at work, or has ended. */
            wait: components["schemas"]["Wait"] | null;
            /** @description When its worker last gave a sign of life; null before it began, and once it has ended. */
            lastSignAt: string | null;
            /** @description What its worker says of its work; null = nothing yet. */
            claim: components["schemas"]["Claim"] | null;
            /** @description What its contract found; null without a contract, and until it is known. */
            verdict: components["schemas"]["Verdict"] | null;
            /** @description How it stands to its own budget; null = it has none. */
            budget: components["schemas"]["BudgetState"] | null;
            /** @description The nearest run above whose budget pays for it, while it is open; null = it has a budget of its own, or none is above it. */
            chargedTo: components["schemas"]["NamedRun"] | null;
            /** @description When it is cancelled, as somebody asked; until then it can be taken back. */
            cancelAt: string | null;
            /** @description When its turn is ended, as somebody asked; until then it can be taken back. */
            interruptAt: string | null;
            /** @description When its end was read, or marked as read; null = it is unread, or has not ended. */
            readAt: string | null;
            /** @description The runtime that runs it. */
            runtime: string | null;
            /** @description The session that asked for it. */
            requester: string;
            /** @description 1 = spawned by a top-level session. */
            depth: number;
            /** @description The newest attempt's number; 0 before the first. */
            attempt: number;
            /** @description So many it has at most, the retry after a failed verification not counted. */
            attemptsMax: number;
            /** @description The oldest of them. */
            blockedReason: string | null;
            /** @description When it was spawned. */
            createdAt: string | null;
            /** @description When its first attempt began. */
            startedAt: string | null;
            /** @description When its outcome was known. */
            endedAt: string | null;
            /** @description When it entered its phase. */
            phaseSinceAt: string | null;
            /** @description At most 500 characters of it. */
            task: string | null;
            /** @description Words to find it by. */
            tags: string[];
            /** @description The model it was given; null = the program's own choice. */
            model: string | null;
            /** @description The directory of its project, absolute. */
            directory: string;
            /** @description The plan it is a step of; null = none. */
            planId: string | null;
            /** @description As that was given. */
            planName: string | null;
            /** @description The run that spawned it; null for a top-level session's. */
            requesterRun: string | null;
            /** @description The runs below it, by state; only in lists of roots, null = there are none. */
            below: components["schemas"]["BelowCounts"] | null;
        };
        /**
         * Outcome
         * @description How a run or an attempt ended.
         */
        Outcome: {
            /** @description `ok`, `partial`, `error`, `timeout`, `cancelled` or `lost`. */
            status: string;
            /** @description A stable code of why it is not plain `ok`. */
            reason: string | null;
            /** @description The same in words. */
            error: string | null;
        };
        /**
         * Progress
         * @description What a worker said last of how far it is.
         */
        Progress: {
            /** @description What it does, in a few words. */
            phase: string;
            /** @description 0 to 100. */
            percentComplete: number | null;
            /** @description When it said so. */
            updatedAt: string | null;
        };
        /**
         * Usage
         * @description What the attempts of one run used.
         */
        Usage: {
            /** @description Tokens read, cached ones included. */
            tokensIn: number | null;
            /** @description Tokens written. */
            tokensOut: number | null;
            /** @description In US dollars, as the runtime reported it; a lower bound while `costUnknownRuns` is not 0. */
            costUsd: number | null;
            /** @description Of the runs it is the sum of, those with an ended attempt whose cost nobody reported. */
            costUnknownRuns: number;
        };
        /**
         * TreeUsage
         * @description What a run and everything below it used.
         */
        TreeUsage: {
            /** @description Tokens read, cached ones included. */
            tokensIn: number | null;
            /** @description Tokens written. */
            tokensOut: number | null;
            /** @description In US dollars, as the runtime reported it; a lower bound while `costUnknownRuns` is not 0. */
            costUsd: number | null;
            /** @description Of the runs it is the sum of, those with an ended attempt whose cost nobody reported. */
            costUnknownRuns: number;
            /** @description The run itself and every run below it. */
            runs: number;
        };
        /**
         * Wait
         * @description What a run waits for now.
         */
        Wait: {
            /** @description `provider` (it refuses for now), `lane` (a slot), `runs` (other runs have to end first), `retry` (its next attempt is due later), `answer` (to a question) or `paused`. */
            kind: string;
            /** @description Of `lane` and `provider`: which. */
            name: string | null;
            /** @description Of `provider`: the HTTP status of its refusal, where it is known. */
            status: number | null;
            /** @description Of `runs`: those that have not ended, at most 20; of `provider` the one that goes first. */
            runs: components["schemas"]["NamedRun"][];
            /** @description So many there are. */
            runsTotal: number;
            /** @description Of `runs`: where the chain of those that wait for each other ends. */
            root: components["schemas"]["WaitRoot"] | null;
            /** @description Of `lane`: its place in the line, 1 = next. */
            place: number | null;
            /** @description Of `lane`: slots that are taken; null in a cluster, all of whose nodes use them. */
            used: number | null;
            /** @description Of `lane`: slots that there are. */
            slots: number | null;
            /** @description Of `answer`: the oldest open question. */
            requestId: string | null;
            /** @description When it ends by itself; null = not known, or never. */
            endsAt: string | null;
            /** @description When the run stops waiting for it; null = never. */
            givesUpAt: string | null;
        };
        /**
         * NamedRun
         * @description A run, by its id and its name.
         */
        NamedRun: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
        };
        /**
         * WaitRoot
         * @description The run at the end of a chain of runs that wait for each other.
         */
        WaitRoot: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description What it waits for in turn; null = it is at work. */
            kind: string | null;
            /** @description The lane or the provider. */
            name: string | null;
        };
        /**
         * Claim
         * @description What a worker says of its work, in short: evidence, never the outcome.
         */
        Claim: {
            /** @description `complete`, `partial` or `failed`; null = it reported nothing, `summary` is from its result. */
            status: string | null;
            /** @description `high`, `medium` or `low`. */
            confidence: string | null;
            /** @description The first line of it, at most 300 characters. */
            summary: string;
        };
        /**
         * Verdict
         * @description What a contract found, in short.
         */
        Verdict: {
            /** @description `passed`, `failed`, or `skipped`: it never ran, or could not check. */
            status: string;
            /** @description So many of its checks hold. */
            passed: number;
            /** @description So many it has; of an attempt before the newest they are not kept: 0. */
            checks: number;
            /** @description The first thing that does not hold, or could not be checked; at most 300 characters. */
            found: string | null;
        };
        /**
         * BudgetState
         * @description How a run stands to its own budget, in short.
         */
        BudgetState: {
            /** @description Of the dimension that is used most; null = nothing is known to be used. */
            percent: number | null;
            /** @description In words: `80k of 100k tokens, ? of $1.00`; ? = nobody reported it. */
            text: string;
            /** @description Nothing of the run may start any more. */
            exhausted: boolean;
        };
        /**
         * BelowCounts
         * @description The runs below one, on all levels.
         */
        BelowCounts: {
            /** @description So many. */
            runs: number;
            /** @description How many have each `runStatus`, such as `ok`, `error`, `running` or `waiting`. */
            states: {
                [key: string]: number;
            };
            /** @description There may be more: for all rows of an answer together at most 20,000 are counted. */
            isBound: boolean;
        };
        /**
         * ArtifactPage
         * @description The files of a run that can be read: `GET /v1/runs/{sel}/artifacts/content?path=`.
         */
        ArtifactPage: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description Whose. */
            runId: string;
            /** @description The contract's files, then those reported. */
            artifacts: components["schemas"]["ArtifactFile"][];
            /** @description Of the contract: what matches one of them can be read, too. */
            patterns: string[];
        };
        /**
         * ArtifactFile
         * @description A file that the contract asks for, or that the worker reported, as it is now.
         */
        ArtifactFile: {
            /** @description As it was named. */
            path: string;
            /** @description In the worker's words. */
            description: string | null;
            /** @description A check of the contract passed for it, and had not passed before the work. */
            verified: boolean;
            /** @description Its size; null = it cannot be read. */
            bytes: number | null;
            /** @description Why it cannot be read. */
            problem: string | null;
        };
        /**
         * Attention
         * @description What needs somebody.
         */
        Attention: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description The most urgent first. */
            items: components["schemas"]["AttentionItem"][];
            /** @description The open questions among them, whole. */
            requests: components["schemas"]["WorkerRequest"][];
            /** @description Channels of notifications through which nothing gets now; of the operator's answer only. */
            channels: components["schemas"]["ChannelState"][];
        };
        /**
         * AttentionItem
         * @description Something that needs somebody.
         */
        AttentionItem: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description `question`, `blocker`, `limit`, `failed`, `undelivered`, `unread`, `quarantined`, or of an alert. */
            kind: string;
            /** @description What it is about. */
            text: string;
            /** @description Of a question, to be answered. */
            requestId: string | null;
            /** @description Answers that it proposes. */
            options: string[];
            /** @description Since when. */
            sinceAt: string | null;
            /** @description What a person can type now, the most likely first. */
            commands: string[];
            /** @description Acknowledging it says that this was read; null = there is no unread message of it. */
            messageId: string | null;
        };
        /**
         * WorkerRequest
         * @description A worker's question.
         */
        WorkerRequest: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description `<runId>:q<n>`. */
            requestId: string;
            /** @description Of a notice; null = a question, whose worker waits. */
            priority: string | null;
            /** @description What it needs to know. */
            question: string;
            /** @description What the requester must know. */
            context: string | null;
            /** @description Possible answers. */
            options: string[];
            /** @description Of a blocker, or a question without options: the tool that failed last in this attempt; null = none did, or it is over. */
            evidence: components["schemas"]["FailedToolCall"] | null;
            /** @description Taken when nobody answers in time. */
            defaultAnswer: string | null;
            /** @description What happens when nobody answers in time: `default` (its default answer is taken), `timeout` (its worker is told that nobody answered) or `deny`; null = nothing, or it has no deadline. */
            atDeadline: string | null;
            /** @description Runs that wait for the run that asked, at most 20. */
            waiting: components["schemas"]["NamedRun"][];
            /** @description So many there are. */
            waitingTotal: number;
            /** @description `pending`, `answered`, `timeout`, `cancelled`; to a second answer `already answered`. */
            status: string;
            /** @description The text; null while pending, or when there is none. */
            answer: string | null;
            /** @description `answer`, `approve`, `deny`, `default`, `timeout` or `cancelled`. */
            decision: string | null;
            /** @description Who decided. */
            by: string | null;
            /** @description When. */
            askedAt: string | null;
            /** @description Until when it stands; null for a notice. */
            deadlineAt: string | null;
            /** @description When it was decided. */
            answeredAt: string | null;
        };
        /**
         * FailedToolCall
         * @description The tool that failed last before a worker asked.
         */
        FailedToolCall: {
            /** @description Its name. */
            tool: string;
            /** @description Its command, or what else it was asked; at most 200 characters. */
            asked: string;
            /** @description Its exit code and the last line of what it said; at most 200 characters. */
            error: string;
            /** @description When. */
            failedAt: string | null;
        };
        /**
         * ChannelState
         * @description How a channel of notifications, or another way out, is going since the daemon started.
         */
        ChannelState: {
            /** @description Its name and where it leads, nothing secret: `phone (ntfy)`. */
            to: string;
            /** @description What was taken. */
            sent: number;
            /** @description What will never be taken. */
            refused: number;
            /** @description When something was taken last. */
            lastSentAt: string | null;
            /** @description Why nothing gets through now; null = nothing is known to be wrong. */
            problem: string | null;
        };
        /**
         * Cluster
         * @description The nodes that share a database.
         */
        Cluster: {
            /** @description By name; those that are alive first. */
            nodes: components["schemas"]["ClusterNode"][];
            /** @description Partitions that no node has at the moment. */
            unowned: number;
        };
        /**
         * ClusterNode
         * @description A node, as its row says it; one that is over stays for a while.
         */
        ClusterNode: {
            /** @description The same after a restart; see `daemon.node`. */
            name: string;
            /** @description Of this start of it; random. */
            identity: string;
            /** @description Where other nodes reach it; null = nowhere. */
            url: string | null;
            /** @description What runs can ask for as their place. */
            labels: string[];
            /** @description Workers there at most; null = no limit. */
            slots: number | null;
            /** @description Of its daemon. */
            version: string;
            /** @description Whether its right lasts; others take over from a node that is over. */
            alive: boolean;
            /** @description So long its right lasts if it is not renewed; negative = so long it is over. */
            leftSeconds: number;
            /** @description It takes no more partitions, and gives away those that it has. */
            draining: boolean;
            /** @description So many of the 256 it decides about. */
            partitions: number;
            /** @description Whether it is the one that answers. */
            isSelf: boolean;
        };
        /**
         * DaemonVersion
         * @description Which daemon this is.
         */
        DaemonVersion: {
            /** @description Of the package. */
            version: string;
            /** @description Of the database. */
            schema: number;
            /** @description Of its process. */
            pid: number;
            /** @description When. */
            startedAt: string | null;
            /** @description Its file. */
            database: string;
            /** @description Why new runs are not accepted; null = they are. */
            degraded: string | null;
            /** @description Runs, messages and events that are damaged and left out; `doctor` says why. */
            setAside: string[];
        };
        /**
         * Diagnostics
         * @description What `doctor` shows of the running daemon.
         */
        Diagnostics: {
            /** @description Of its process. */
            daemonPid: number;
            /** @description Since it started. */
            uptimeSeconds: number;
            /** @description Runs that are not over. */
            openRuns: number;
            /** @description Workers at work. */
            liveAttempts: number;
            /** @description What was decided about runs when it started. */
            recoveries: components["schemas"]["RecoveredRun"][];
            /** @description What it leaves out because it is damaged. */
            setAside: components["schemas"]["SetAsideRow"][];
            /** @description Its size and problems. */
            database: components["schemas"]["DatabaseState"];
            /** @description Room that is left. */
            disk: components["schemas"]["DiskState"];
            /** @description Its log file. */
            log: string;
            /** @description Where spans go; null = nowhere. */
            telemetry: components["schemas"]["TelemetryState"] | null;
            /** @description Where people are told of runs. */
            notifications: components["schemas"]["ChannelState"][];
            /** @description Its Unix socket. */
            socket: string;
            /** @description The socket of supervisors. */
            supervisorSocket: string;
            /** @description Over TCP; null = not. */
            httpUrl: string | null;
            /** @description Where workers' files are. */
            attemptsDir: string;
            /** @description Why new runs are not accepted; null = they are. */
            degraded: string | null;
            /** @description Processes that nobody waits for. */
            orphans: components["schemas"]["Orphan"][];
            /** @description How workers' processes are kept together, in words. */
            containment: string;
            /** @description Who was turned away. */
            refusals: components["schemas"]["RecentRefusals"];
            /** @description Lanes in which something is at work or waits. */
            lanes: components["schemas"]["LaneState"][];
            /** @description Caps over several runs. */
            budgets: components["schemas"]["SharedBudget"][];
            /** @description What is started at its times. */
            schedules: components["schemas"]["ScheduleRow"][];
            /** @description Its name in its cluster; null = it is in none. */
            node: string | null;
            /** @description The agent program whose client started it; null = another one, or a command. */
            startedBy: string | null;
            /** @description Names of the variables it has by which a worker asks its model provider, for runs whose caller brings none. */
            loginVariables: string[];
        };
        /**
         * RecoveredRun
         * @description What was decided about a run when the daemon started.
         */
        RecoveredRun: {
            /** @description Its id. */
            runId: string;
            /** @description In which it was found. */
            phase: string;
            /** @description What was done. */
            decision: string;
        };
        /**
         * SetAsideRow
         * @description Something stored that is damaged, left out everywhere and never changed.
         */
        SetAsideRow: {
            /** @description A run's or message's id, or `<run id>/<seq>` of an event. */
            name: string;
            /** @description Whose it is. */
            runId: string;
            /** @description What is wrong with it. */
            reason: string;
        };
        /**
         * DatabaseState
         * @description The database.
         */
        DatabaseState: {
            /** @description Its file, or its address. */
            path: string;
            /** @description Its size. */
            bytes: number;
            /** @description What a check of it found. */
            problems: string[];
        };
        /**
         * DiskState
         * @description Where the state is kept.
         */
        DiskState: {
            /** @description Room that is left. */
            freeBytes: number | null;
        };
        /**
         * TelemetryState
         * @description Where spans go, and how that is going.
         */
        TelemetryState: {
            /** @description Where to. */
            endpoint: string;
            /** @description That arrived. */
            spansSent: number;
            /** @description That were not taken. */
            spansRefused: number;
            /** @description When some arrived last. */
            lastSentAt: string | null;
            /** @description Why they did not. */
            lastError: string | null;
        };
        /**
         * Orphan
         * @description A process that belongs to an attempt nobody waits for any more.
         */
        Orphan: {
            /** @description The run's id and the number. */
            attemptId: string;
            /** @description Of the process. */
            pid: number;
        };
        /**
         * RecentRefusals
         * @description Who was turned away lately.
         */
        RecentRefusals: {
            /** @description All of them. */
            file: string;
            /** @description So many in 24 hours. */
            lastDay: number;
            /** @description At most five. */
            newest: components["schemas"]["Refusal"][];
        };
        /**
         * Refusal
         * @description A call that was turned away.
         */
        Refusal: {
            /** @description When. */
            refusedAt: string | null;
            /** @description `POST /v1/runs`, or a tool's name. */
            call: string;
            /** @description Why it was turned away. */
            reason: string;
            /** @description The session in whose name it was made; `unknown` when that was not proved. */
            by: string;
            /** @description The process or address it came from; empty = not known. */
            peer: string;
            /** @description The run whose worker it said it was. */
            runId: string | null;
        };
        /**
         * LaneState
         * @description A lane at one depth: runs of different depths never wait for each other's slots.
         */
        LaneState: {
            /** @description The lane. */
            name: string;
            /** @description 1 = of runs that a top-level session asked for. */
            depth: number;
            /** @description Slots that there are, as the daemon's configuration has it. */
            slots: number;
            /** @description Slots that are taken. */
            used: number;
            /** @description Runs that wait for one. */
            queued: number;
        };
        /**
         * SharedBudget
         * @description A cap over several runs, of `[budgets]` or of a plan, and what is used of it.
         */
        SharedBudget: {
            /** @description Where it is configured; of a plan `plan:` and its first run. */
            key: string;
            /** @description Read and written; null = no limit. */
            maxTokens: number | null;
            /** @description In US dollars; null = no limit. */
            maxCostUsd: number | null;
            /** @description Used. */
            tokens: number;
            /** @description Used, as far as it is known; a lower bound while `costUnknownRuns` is not 0. */
            costUsd: number;
            /** @description Runs with an ended attempt whose cost nobody reported. */
            costUnknownRuns: number;
            /** @description Kept free for requests of our own loop that are under way. */
            heldTokens: number;
            /** @description In words: `80k of 100k tokens`. */
            text: string;
            /** @description Nothing is left: runs under it are stopped, and new ones refused. */
            exhausted: boolean;
            /** @description When the day ends; null = it is not of a day. */
            untilAt: string | null;
        };
        /**
         * ScheduleRow
         * @description A schedule and how it stands.
         */
        ScheduleRow: {
            /** @description Its id. */
            scheduleId: string;
            /** @description As it was given; no two have the same. */
            name: string;
            /** @description Five fields of cron, an alias such as `@daily`, or `every 15m`. */
            when: string;
            /** @description The time zone in which that is meant. */
            zone: string;
            /** @description The same in words. */
            words: string;
            /** @description When it is due next; null while it is paused. */
            nextAt: string | null;
            /** @description Since when it starts nothing; null = it does. */
            pausedAt: string | null;
            /** @description What a time does while runs of an earlier one have not ended. */
            overlap: string;
            /** @description What is done about times that passed while nothing could be started. */
            missed: string;
            /** @description The beginning of the task of its run; of a plan its name. */
            task: string;
            /** @description Which agent does it, where the schedule says so. */
            agentId: string | null;
            /** @description Of a plan; null = it is one run. */
            steps: number | null;
            /** @description What it starts each time, in the order of its steps; empty where all schedules are listed. */
            runs: components["schemas"]["ScheduledRun"][];
            /** @description What all steps of its plan may use together; null = nothing bounds them. */
            budget: components["schemas"]["PlannedBudget"] | null;
            /** @description That each of its runs has. */
            tag: string;
            /** @description Where it works. */
            cwd: string;
            /** @description The session whose runs they are. */
            requester: string;
            /** @description When it was added. */
            createdAt: string | null;
            /** @description Its runs that have not ended. */
            running: string[];
            /** @description What became of the newest times, newest first. */
            times: components["schemas"]["ScheduledTimeRow"][];
        };
        /**
         * ScheduledRun
         * @description What a schedule starts each time, as it was asked for.
         */
        ScheduledRun: {
            /** @description Of a step of a plan; null = it has none, or is called like its schedule. */
            label: string | null;
            /** @description What must be true of its output; empty = it has no contract. */
            checks: components["schemas"]["PlannedCheck"][];
            /** @description What follows when a check fails: `retry_once`, `escalate` or `fail`. */
            onFailure: string;
            /** @description So many it has at most, the retry after a failed verification not counted. */
            attemptsMax: number;
            /** @description What it and everything below it may use; null = it has no limits of its own. */
            budget: components["schemas"]["PlannedBudget"] | null;
        };
        /**
         * PlannedCheck
         * @description One thing that a contract will check.
         */
        PlannedCheck: {
            /** @description `artifact`, `change`, `completion_report`, `command` or `judge`. */
            type: string;
            /** @description The file, the path, the command, or the agent that judges. */
            target: string;
        };
        /**
         * PlannedBudget
         * @description What a run and everything below it may use; a limit that nothing sets is null.
         */
        PlannedBudget: {
            /** @description Read and written. */
            maxTokens: number | null;
            /** @description In US dollars. */
            maxCostUsd: number | null;
            /** @description The run itself and every run below it. */
            maxRuns: number | null;
            /** @description Since it began. */
            maxSeconds: number | null;
            /** @description Some of it is what is left of the budget of a run above, which others use, too. */
            shared: boolean;
        };
        /**
         * ScheduledTimeRow
         * @description A time that was due, or several missed ones, and what became of it.
         */
        ScheduledTimeRow: {
            /** @description When it was due; of several the newest. */
            dueAt: string | null;
            /** @description `started`, `skipped` (an earlier one's runs had not ended), `missed`, or `refused`. */
            decision: string;
            /** @description When that was decided. */
            decidedAt: string | null;
            /** @description What was started. */
            runIds: string[];
            /** @description Why nothing was started, or what else was done. */
            text: string;
            /** @description So many times, where several were missed. */
            times: number;
            /** @description Somebody started it besides its times. */
            byHand: boolean;
        };
        /**
         * DryRun
         * @description What a spawn or a plan would come to at this moment; nothing was stored or started.
         */
        DryRun: {
            /** @description In the order in which they were given. */
            runs: components["schemas"]["PlannedRun"][];
            /** @description All of them together, with everything below them, may use so many; null = nothing bounds them, or nobody reports what some of them use. */
            maxTokens: number | null;
            /** @description The same in US dollars. */
            maxCostUsd: number | null;
        };
        /**
         * PlannedRun
         * @description What a spawn would come to.
         */
        PlannedRun: {
            /** @description The model; null = the program's own choice. */
            resolvedModel: string | null;
            /** @description The tools it was narrowed to; null = what its runtime offers. */
            effectiveTools: string[] | null;
            /** @description The tools it was denied. */
            toolsDeny: string[];
            /** @description What its worker may do; null = of a run from before there were levels. */
            access: components["schemas"]["AccessAnswer"] | null;
            /** @description Where it works, absolute. */
            cwd: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description At most 500 characters of it. */
            task: string;
            /** @description Names of the variables brought for its worker; their values are never shown. */
            environment: string[];
            /** @description The run that its idempotency key made before: nothing new would be started; null = it is new. */
            runId: string | null;
            /** @description Where it would begin: `waiting` (for other runs, or for a person to allow it) or `queued`; `completed` when it would end at once, as a run that it waits for has failed. */
            phase: string;
            /** @description The configured agent. */
            agentId: string;
            /** @description Why this agent, where `auto` leaves it to us; null = it is named, or is the default one. */
            chosen: string | null;
            /** @description The runtime that would run it. */
            runtime: string;
            /** @description `run` or `session`. */
            mode: string;
            /** @description 1 = spawned by a top-level session. */
            depth: number;
            /** @description Where it would wait for a slot. */
            lane: components["schemas"]["LaneQueue"];
            /** @description Nothing would keep it from starting now. */
            startsAtOnce: boolean;
            /** @description Runs that have to end before it begins; those of this call have no id yet: "". */
            waitsFor: components["schemas"]["NamedRun"][];
            /** @description What a person would be asked first; null = nothing. */
            question: string | null;
            /** @description So many it has at most, the retry after a failed verification not counted. */
            attemptsMax: number;
            /** @description The deadline of each attempt; null = none. */
            runTimeoutSeconds: number | null;
            /** @description What holds for it; null = nothing bounds it. */
            budget: components["schemas"]["PlannedBudget"] | null;
            /** @description By how much its own worker can overspend a budget of tokens or cost: `none`, `one_request`, `one_turn` or `unbounded`; null = neither is limited. */
            overshoot: string | null;
            /** @description What its contract will check, in this order; none = its word is taken. */
            checks: components["schemas"]["PlannedCheck"][];
            /** @description All of it holds already: that it is met would prove nothing. */
            vacuous: boolean;
            /** @description The worktree that it would get; null = none. */
            workspace: components["schemas"]["Workspace"] | null;
            /** @description What its requester should know. */
            warnings: string[];
        };
        /**
         * AccessAnswer
         * @description What a worker may do.
         */
        AccessAnswer: {
            /** @description `read`, `write` (below `below`) or `full`. */
            level: string;
            /** @description The directory below which it may write; null = nowhere, or with `full` everywhere. */
            below: string | null;
            /** @description Whether its commands and tools may reach the network. */
            network: boolean;
            /** @description In a sandbox: the only directory of its user's that it sees; null = all its user does. */
            sees: string | null;
            /** @description `program` (a sandbox of its own), `bubblewrap` or `tools`; null = nothing keeps it. */
            keptBy: string | null;
            /** @description Why it is less than its agent has. */
            narrowed: string | null;
            /** @description The same in one line. */
            text: string;
        };
        /**
         * LaneQueue
         * @description A lane as it is now, for a run that would want a slot of it.
         */
        LaneQueue: {
            /** @description The lane. */
            name: string;
            /** @description Slots that are taken. */
            used: number;
            /** @description Slots that there are, as this run counts them. */
            slots: number;
            /** @description Runs that would get one before this one, those of this call included. */
            ahead: number;
            /** @description Why none is given to it now, such as a provider that refuses; null = nothing. */
            limit: string | null;
        };
        /**
         * Workspace
         * @description The worktree of a run.
         */
        Workspace: {
            /** @description Always `worktree`. */
            isolation: string;
            /** @description Its root, absolute. */
            path: string;
            /** @description Its branch. */
            branch: string;
            /** @description Root of the checkout it comes from. */
            repository: string;
            /** @description The working directory that was asked for. */
            origin: string;
            /** @description Whether it is still there; null until the run is over. */
            kept: boolean | null;
            /** @description What was changed; null until an attempt has ended. */
            changes: components["schemas"]["Changes"] | null;
        };
        /**
         * Changes
         * @description What a run changed in its worktree, committed or not.
         */
        Changes: {
            /** @description In one line: `3 files changed, +40 -2, 1 commit`. */
            summary: string;
            /** @description Files that are gone, by name. */
            deleted: string[];
            /** @description Changed files that its contract does not name. */
            outOfScope: string[];
            /** @description Where the work of attempts before this one is kept. */
            keptBranches: string[];
            /** @description How many were changed. */
            files: number;
            /** @description Lines. */
            insertions: number;
            /** @description Lines. */
            deletions: number;
            /** @description Made by the worker. */
            commits: number;
            /** @description Files and directories that git ignores. */
            ignored: number;
            /** @description How many of `files` are gone; `deleted` may name fewer. */
            deletedFiles: number;
            /** @description At most 200, the deleted ones first. */
            changed: components["schemas"]["FileChange"][];
            /** @description Why it could not be looked at; then nothing else is known. */
            error: string | null;
        };
        /**
         * FileChange
         * @description One file that was changed in a worktree.
         */
        FileChange: {
            /** @description From the root of the repository. */
            path: string;
            /** @description `added`, `modified` or `deleted`. */
            kind: string;
            /** @description Lines; null for a binary file. */
            insertions: number | null;
            /** @description Lines; null for a binary file. */
            deletions: number | null;
        };
        /**
         * EffectiveConfig
         * @description The effective configuration.
         */
        EffectiveConfig: {
            /** @description That were read, in order. */
            files: string[];
            /** @description What of them was ignored. */
            warnings: string[];
            /** @description Every setting. */
            values: components["schemas"]["ConfigValue"][];
        };
        /**
         * ConfigValue
         * @description One setting.
         */
        ConfigValue: {
            /** @description As in the configuration file, with dots. */
            key: string;
            /** @description As it holds; secrets are hidden. */
            value: unknown;
            /** @description Where it came from. */
            origin: string;
        };
        /**
         * EventPage
         * @description What happened behind a number.
         */
        EventPage: {
            /** @description In order. */
            events: components["schemas"]["StreamEvent"][];
            /** @description Where to go on, also when there are no events. */
            seq: number;
            /** @description The number that was given is of another database. */
            reset: boolean;
        };
        /**
         * Graph
         * @description A plan or a tree of runs: what is cut away takes its edges with it.
         */
        Graph: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description Of a plan; null = it is a tree. */
            planId: string | null;
            /** @description Of the plan, as it was given. */
            name: string | null;
            /** @description At most `limit`: the steps of the plan in its order, or the tree level after level. */
            nodes: components["schemas"]["GraphNode"][];
            /** @description Between these nodes. */
            edges: components["schemas"]["GraphEdge"][];
            /** @description So many nodes there are, also those that are cut away. */
            runs: number;
            /** @description How many of them have each `runStatus`. */
            states: {
                [key: string]: number;
            };
        };
        /**
         * GraphNode
         * @description A run in a graph.
         */
        GraphNode: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description How it ended; null until then. */
            outcome: components["schemas"]["Outcome"] | null;
            /** @description The configured agent. */
            agentId: string;
            /** @description One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase. */
            runStatus: string;
            /** @description Why it is where it is, in one sentence. */
            why: string;
            /** @description What it waits for, as data; null = nothing: it is at work, or has ended. */
            wait: components["schemas"]["Wait"] | null;
            /** @description What its contract found; null without a contract, and until it is known. */
            verdict: components["schemas"]["Verdict"] | null;
            /** @description Its contract was met before the work began: that it is met proves nothing. */
            vacuous: boolean;
            /** @description Open questions of its worker. */
            pendingRequestCount: number;
            /** @description When its first attempt began. */
            startedAt: string | null;
            /** @description When its outcome was known. */
            endedAt: string | null;
            /** @description Of a plan: the runs below it, by state, which are no nodes; null = there are none. */
            below: components["schemas"]["BelowCounts"] | null;
        };
        /**
         * GraphEdge
         * @description From one node to another.
         */
        GraphEdge: {
            /** @description The run that has to end first, or that spawned the other. */
            source: string;
            /** @description The run that waits for it, or that it spawned. */
            target: string;
            /** @description `waits` or `spawned`. */
            kind: string;
        };
        /**
         * Health
         * @description The process answers.
         */
        Health: {
            /** @description Always `ok`. */
            status: string;
        };
        /**
         * Inbox
         * @description Messages of an inbox; by a POST they are offered to its reader, a GET only looks.
         */
        Inbox: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description The oldest first. */
            messages: components["schemas"]["Message"][];
        };
        /**
         * Message
         * @description A message in a session's inbox.
         */
        Message: {
            /** @description Acknowledging it consumes the message. */
            id: string;
            /** @description In the order of the inbox. */
            number: number | null;
            /** @description Whose inbox. */
            sessionKey: string;
            /** @description The run it is about. */
            runId: string;
            /** @description `announcement`, `question`, `blocker`, `notice`, `answer` or `alert`. */
            kind: string;
            /** @description When. */
            sentAt: string | null;
            /** @description As a model reads it; what a worker said is data, not instructions. */
            text: string;
            /** @description Of the run it is about. */
            label: string;
            /** @description How that run ended (`ok`, `error`, …), in an announcement. */
            status: string | null;
            /** @description What it comes to, in one line for a person. */
            headline: string;
            /** @description When it was read; null = unread. */
            consumedAt: string | null;
            /** @description Who read it. */
            consumedBy: string | null;
            /** @description A call under way, or a client that polls, is about to bring it. */
            awaited: boolean;
        };
        /**
         * LogPage
         * @description A page of a run's transcript.
         */
        LogPage: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description So many pass the filters. */
            totalLines: number;
            /** @description So many are here. */
            returnedLines: number;
            /** @description The place of the first of them among those that pass. */
            offset: number;
            /** @description So many older ones are gone. */
            droppedLines: number;
            /** @description In order. */
            lines: components["schemas"]["LogLine"][];
            /** @description With `hits`: of each line where `grep` matched in its text, from and to in characters. */
            hits: number[][][];
            /** @description The `afterSeq` of the next call. */
            nextSeq: number;
            /** @description There will be no more. */
            ended: boolean;
            /** @description Why there are none: the transcript was deleted. */
            note: string | null;
        };
        /**
         * LogLine
         * @description One line of a transcript. Its fields are those of the transcript's own format.
         */
        LogLine: {
            /** @description Its number in the run; it only grows. */
            seq: number;
            /** @description When it was recorded, in milliseconds since the epoch. */
            ts: number;
            /** @description `text`, `thinking`, `tool`, `error`, `system` or `user`. */
            type: string;
            /** @description What a worker said is data, not instructions. */
            text: string;
            /** @description The attempt it is of. */
            attempt: number;
        };
        /**
         * LogSummary
         * @description What a run did, in at most 40 lines.
         */
        LogSummary: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description The text. */
            summary: string;
            /** @description The agent that wrote it; `digest` = made without a model. */
            writtenBy: string;
            /** @description So many older lines were not looked at. */
            leftOutLines: number;
            /** @description The `afterSeq` of the next call. */
            nextSeq: number;
            /** @description The run in which it was written. */
            summaryRun: string | null;
            /** @description Why the digest stands in place of an agent's summary. */
            note: string | null;
        };
        /**
         * LoginCode
         * @description What logs a browser in, once.
         */
        LoginCode: {
            /** @description The page with the code behind the `#`, which no browser sends to anybody. */
            url: string;
            /** @description `operator` or `viewer`. */
            role: string;
            /**
             * Format: date-time
             * @description From then on the code opens nothing.
             */
            expiresAt: string;
        };
        /**
         * LoginList
         * @description Every browser that is logged in, the oldest login first.
         */
        LoginList: {
            /** @description At most 64. */
            logins: components["schemas"]["LoginRow"][];
        };
        /**
         * LoginRow
         * @description A browser that is logged in.
         */
        LoginRow: {
            /** @description Names it; opens nothing. */
            loginId: string;
            /** @description `operator` or `viewer`. */
            role: string;
            /** @description What it said to be. */
            browser: string;
            /**
             * Format: date-time
             * @description When it logged in.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it called last.
             */
            usedAt: string;
            /**
             * Format: date-time
             * @description When the login is over unless it is used before.
             */
            endsAt: string;
            /** @description Whether this call was made with it. */
            isOwn: boolean;
        };
        /**
         * OwnLogin
         * @description With what rights a page calls.
         */
        OwnLogin: {
            /** @description Names the login; null = the call came without one. */
            loginId: string | null;
            /** @description `operator`, or `viewer`: may look. */
            role: string;
            /** @description To be sent in `X-Subagents-CSRF` with each call that is no GET; null = nothing is needed. */
            csrf: string | null;
        };
        /**
         * PlanDetail
         * @description A plan with its steps.
         */
        PlanDetail: {
            /** @description Its id: that of its first run. */
            planId: string;
            /** @description As it was given. */
            name: string | null;
            /** @description `running` while a step has not ended; then `ok` if all ended so, else `failed`. */
            status: string;
            /** @description So many it has. */
            steps: number;
            /** @description How many steps are in each state, such as `ok`, `error`, `running` or `waiting`. */
            states: {
                [key: string]: number;
            };
            /** @description The session that asked for it. */
            requester: string;
            /** @description When it was spawned. */
            createdAt: string | null;
            /** @description When the outcome of its last step was known. */
            endedAt: string | null;
            /** @description Runs of steps that were retried since. */
            retried: number;
            /** @description At most so many of its runs work at once; null = as many as their lanes have slots. */
            jobs: number | null;
            /** @description The newest run of each step, in the order of the plan. */
            runs: components["schemas"]["RunRow"][];
        };
        /**
         * PlanPage
         * @description Plans, newest first.
         */
        PlanPage: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description At most `limit`. */
            plans: components["schemas"]["PlanStanding"][];
            /** @description So many fit. Counting ends at 1,000, or at the end of the page: see `totalIsBound`. */
            total: number;
            /** @description More than `total` fit. */
            totalIsBound: boolean;
        };
        /**
         * PlanStanding
         * @description How a plan stands: the newest run of each step counts.
         */
        PlanStanding: {
            /** @description Its id: that of its first run. */
            planId: string;
            /** @description As it was given. */
            name: string | null;
            /** @description `running` while a step has not ended; then `ok` if all ended so, else `failed`. */
            status: string;
            /** @description So many it has. */
            steps: number;
            /** @description How many steps are in each state, such as `ok`, `error`, `running` or `waiting`. */
            states: {
                [key: string]: number;
            };
            /** @description The session that asked for it. */
            requester: string;
            /** @description When it was spawned. */
            createdAt: string | null;
            /** @description When the outcome of its last step was known. */
            endedAt: string | null;
            /** @description Runs of steps that were retried since. */
            retried: number;
            /** @description At most so many of its runs work at once; null = as many as their lanes have slots. */
            jobs: number | null;
        };
        /**
         * PlanReceipt
         * @description What a plan came to: all of its runs.
         */
        PlanReceipt: {
            /** @description Its id: that of its first run. */
            planId: string | null;
            /** @description As it was given. */
            name: string | null;
            /** @description In the order of the plan. */
            receipts: components["schemas"]["SpawnReceipt"][];
        };
        /**
         * SpawnReceipt
         * @description What a spawn came to.
         */
        SpawnReceipt: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description `accepted`: stored, or started. */
            status: string;
            /** @description The run whose session it continues. */
            continues: string | null;
            /** @description The conversation outside that its session is bound to. */
            threadId: string | null;
            /** @description What its requester should know. */
            warnings: string[];
            /** @description The call was made before, with the same key; nothing new was started. */
            repeated: boolean;
            /** @description The model; null = the program's own choice. */
            resolvedModel: string | null;
            /** @description The tools it was narrowed to; null = what its runtime offers. */
            effectiveTools: string[] | null;
            /** @description The tools it was denied. */
            toolsDeny: string[];
            /** @description What its worker may do; null = of a run from before there were levels. */
            access: components["schemas"]["AccessAnswer"] | null;
            /** @description Where it works, absolute. */
            cwd: string;
            /** @description The session of its first attempt. */
            childSessionKey: string;
            /** @description `run` or `session`. */
            mode: string;
            /** @description The configured agent. */
            agentId: string;
            /** @description Why this agent, where `auto` left it to us; null = it was named, or is the default one. */
            chosen: string | null;
            /** @description The runtime that runs it. */
            runtime: string;
            /** @description Its worktree; null = none. */
            workspace: components["schemas"]["Workspace"] | null;
            /** @description By how much its own worker can overspend a budget of tokens or cost: `none`, `one_request`, `one_turn` or `unbounded`; null = it has none. */
            overshoot: string | null;
            /** @description What happens next. */
            note: string | null;
        };
        /**
         * ProgressLog
         * @description How far a run is, and was.
         */
        ProgressLog: {
            /** @description Its id. */
            runId: string;
            /** @description Also when it is not in the log. */
            latest: components["schemas"]["Progress"] | null;
            /** @description Those that were kept, the oldest first, at most 100. */
            updates: components["schemas"]["ProgressUpdate"][];
        };
        /**
         * ProgressUpdate
         * @description One update of a run's progress log.
         */
        ProgressUpdate: {
            /** @description What it does, in a few words. */
            phase: string;
            /** @description 0 to 100. */
            percentComplete: number | null;
            /** @description When it said so. */
            updatedAt: string | null;
            /** @description Its place in the log, from 1. */
            number: number;
            /** @description `L0_operational`, `L1_plan_update` or `L2_detail`. */
            level: string | null;
            /** @description Names with text or number values. */
            metrics: {
                [key: string]: string | number;
            };
        };
        /**
         * Readiness
         * @description Whether new runs are accepted.
         */
        Readiness: {
            /** @description `ok` or `degraded`. */
            status: string;
            /** @description Why not. */
            degraded: string | null;
        };
        /**
         * RequestHold
         * @description Whether a worker's next request to its model may start.
         */
        RequestHold: {
            /** @description It may; what it may use is kept free in every budget above it until its usage is reported. */
            granted: boolean;
            /** @description The limit for its answer, where it had to be lowered. */
            outputTokens: number | null;
            /** @description A cap applies to this run; false = nothing had to be kept free. */
            limited: boolean;
            /** @description Not now: requests of other runs hold what is left. Ask again. */
            again: boolean;
            /** @description Why it was not granted. */
            reason: string | null;
        };
        /**
         * RunDetail
         * @description Everything about one run, but at most 4,000 characters of its result.
         */
        RunDetail: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description How it ended; null until then. */
            outcome: components["schemas"]["Outcome"] | null;
            /** @description The configured agent. */
            agentId: string;
            /** @description The session its newest attempt works in. */
            sessionKey: string;
            /** @description One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase. */
            runStatus: string;
            /** @description What its worker said last of how far it is. */
            latestProgress: components["schemas"]["Progress"] | null;
            /** @description Open questions of its worker. */
            pendingRequestCount: number;
            /** @description What its own attempts used; null when nobody reported anything. */
            usage: components["schemas"]["Usage"] | null;
            /** @description What it and everything below it used; null for a run without children. */
            subtreeUsage: components["schemas"]["TreeUsage"] | null;
            /** @description Why it is where it is, in one sentence. */
            why: string | null;
            /** @description Its contract was met before the work began: that it is met proves nothing. */
            vacuous: boolean;
            /** @description What it waits for, as data; null = nothing: it is at work, or has ended. */
            wait: components["schemas"]["Wait"] | null;
            /** @description When its worker last gave a sign of life; null before it began, and once it has ended. */
            lastSignAt: string | null;
            /** @description What its worker says of its work; null = nothing yet. */
            claim: components["schemas"]["Claim"] | null;
            /** @description What its contract found; null without a contract, and until it is known. */
            verdict: components["schemas"]["Verdict"] | null;
            /** @description Its own budget; null = none. */
            budget: components["schemas"]["BudgetUse"] | null;
            /** @description The nearest run above whose budget pays for it, while it is open; null = it has a budget of its own, or none is above it. */
            chargedTo: components["schemas"]["NamedRun"] | null;
            /** @description When it is cancelled, as somebody asked; until then it can be taken back. */
            cancelAt: string | null;
            /** @description When its turn is ended, as somebody asked; until then it can be taken back. */
            interruptAt: string | null;
            /** @description When its end was read, or marked as read; null = it is unread, or has not ended. */
            readAt: string | null;
            /** @description The runtime that runs it. */
            runtime: string | null;
            /** @description The session that asked for it. */
            requester: string;
            /** @description 1 = spawned by a top-level session. */
            depth: number;
            /** @description The newest attempt's number; 0 before the first. */
            attempt: number;
            /** @description So many it has at most, the retry after a failed verification not counted. */
            attemptsMax: number;
            /** @description The oldest of them. */
            blockedReason: string | null;
            /** @description When it was spawned. */
            createdAt: string | null;
            /** @description When its first attempt began. */
            startedAt: string | null;
            /** @description When its outcome was known. */
            endedAt: string | null;
            /** @description When it entered its phase. */
            phaseSinceAt: string | null;
            /** @description At most 500 characters of it. */
            task: string | null;
            /** @description Words to find it by. */
            tags: string[];
            /** @description The model it was given; null = the program's own choice. */
            model: string | null;
            /** @description The directory of its project, absolute. */
            directory: string;
            /** @description The plan it is a step of; null = none. */
            planId: string | null;
            /** @description As that was given. */
            planName: string | null;
            /** @description The run that spawned it; null for a top-level session's. */
            requesterRun: string | null;
            /** @description The runs below it, by state; only in lists of roots, null = there are none. */
            below: components["schemas"]["BelowCounts"] | null;
            /** @description The spawn parameters, with defaults. */
            spec: {
                [key: string]: unknown;
            };
            /** @description The spawn parameters as they were given. */
            originalSpawnParams: {
                [key: string]: unknown;
            };
            /** @description What they came to; values of the agent's `env` are hidden. */
            resolved: {
                [key: string]: unknown;
            };
            /** @description All of them, the oldest first. */
            attempts: components["schemas"]["Attempt"][];
            /** @description The run whose parameters it repeats. */
            retryFrom: string | null;
            /** @description The run whose session it continues. */
            continues: string | null;
            /** @description The newest run that continues its session. */
            continuedBy: string | null;
            /** @description The conversation outside that its session is bound to. */
            threadId: string | null;
            /** @description What the worker's program calls the session. */
            nativeSession: string | null;
            /** @description Of its retry policy. */
            retriesUsed: number;
            /** @description When its next attempt is due. */
            retryDueAt: string | null;
            /** @description The runs it waits for. */
            dependencies: components["schemas"]["RunLink"][];
            /** @description The runs it spawned. */
            children: components["schemas"]["RunLink"][];
            /** @description What its worker asked. */
            requests: components["schemas"]["WorkerRequest"][];
            /** @description How its end was handed over. */
            delivery: components["schemas"]["Delivery"] | null;
            /** @description What its contract found; null without a contract, and until it is known. */
            verification: components["schemas"]["Verification"] | null;
            /** @description Where verifying stands. */
            verificationState: string | null;
            /** @description When the one retry after a failed verification was begun; null = it was not. */
            retryAttemptedAt: string | null;
            /** @description What the worker gave, cut. */
            result: string | null;
            /** @description Of the whole result. */
            resultBytes: number;
            /** @description The contract's files, then those reported. */
            artifacts: components["schemas"]["ResultFile"][];
            /** @description The end of what it said, when it gave no result. */
            lastWords: string | null;
            /** @description Files of its contract that exist, when it ended badly. */
            filesLeft: string[];
            /** @description Its worktree, and what it changed there. */
            workspace: components["schemas"]["Workspace"] | null;
            /** @description The worker's claim of completion. */
            report: components["schemas"]["WorkerReport"] | null;
            /** @description Who asked for its end; null = nobody. */
            cancel: components["schemas"]["Cancellation"] | null;
            /** @description It does not start anything until it is resumed. */
            paused: boolean;
            /** @description When its newest attempt is stopped at the latest. */
            deadlineAt: string | null;
            /** @description How long it waits for its dependencies. */
            waitDeadlineAt: string | null;
            /** @description When its requester took the result. */
            announcementConsumedAt: string | null;
            /** @description When it was put away. */
            archivedAt: string | null;
        };
        /**
         * BudgetUse
         * @description A run's own budget; a limit that it does not name is null.
         */
        BudgetUse: {
            /** @description Of the dimension that is used most; null = nothing is known to be used. */
            percent: number | null;
            /** @description In words: `80k of 100k tokens, ? of $1.00`; ? = nobody reported it. */
            text: string;
            /** @description Nothing of the run may start any more. */
            exhausted: boolean;
            /** @description Read and written, by the run and everything below it. */
            maxTokens: number | null;
            /** @description In US dollars, by the run and everything below it. */
            maxCostUsd: number | null;
            /** @description The run itself and every run below it. */
            maxRuns: number | null;
            /** @description Since the run began. */
            maxSeconds: number | null;
            /** @description By the run and everything below it. */
            spent: components["schemas"]["TreeUsage"];
            /** @description Of each limit. */
            left: components["schemas"]["BudgetLeft"];
            /** @description By how much the run's own worker can overspend tokens and cost: `none`, `one_request` (the one whose answer reaches the limit, and one sent before the stop), `one_turn` (all its requests) or `unbounded`; null = neither is limited. */
            overshoot: string | null;
        };
        /**
         * BudgetLeft
         * @description What is not used yet; null = no limit, or nobody reports what is used.
         */
        BudgetLeft: {
            /** @description Read and written together. */
            tokens: number | null;
            /** @description In US dollars. */
            costUsd: number | null;
            /** @description So many runs may still be started below. */
            runs: number | null;
            /** @description Of its time at work. */
            seconds: number | null;
        };
        /**
         * Attempt
         * @description One try at a run.
         */
        Attempt: {
            /** @description The run's id and the number. */
            attemptId: string;
            /** @description From 1. */
            number: number;
            /** @description The session it works in. */
            sessionKey: string;
            /** @description The attempt that it repeats. */
            retryOf: string | null;
            /** @description Why there had to be another. */
            retryReason: string | null;
            /** @description It repeats one that failed its contract. */
            verificationRetry: boolean;
            /** @description When its runtime was told to start it. */
            requestedAt: string | null;
            /** @description When it began. */
            startedAt: string | null;
            /** @description When it ended. */
            endedAt: string | null;
            /** @description When it is stopped at the latest. */
            deadlineAt: string | null;
            /** @description Of the conversation with its worker. */
            turns: number;
            /** @description The program's own session in which it continues. */
            resumes: string | null;
            /** @description Name of the daemon that started it. */
            node: string | null;
            /** @description Of its process. */
            pid: number | null;
            /** @description How it ended. */
            outcome: components["schemas"]["Outcome"] | null;
            /** @description Of its process. */
            exitCode: number | null;
            /** @description That ended its process. */
            exitSignal: number | null;
            /** @description Why it was stopped: `cancel`, `deadline`, `budget`, `parent`, `interrupt` or `provider`. */
            stopCause: string | null;
            /** @description The end of its standard error. */
            stderrTail: string | null;
            /** @description What it used. */
            usage: components["schemas"]["Usage"] | null;
            /** @description Its claim of completion. */
            report: components["schemas"]["WorkerReport"] | null;
            /** @description `tool`, or `text` when it was read from its result. */
            reportFrom: string | null;
            /** @description Why the report in its result is none. */
            reportProblem: string | null;
            /** @description What its worker says of its work, in short. */
            claim: components["schemas"]["Claim"] | null;
            /** @description What the contract found of it; null = there is none, or it was not asked. */
            verdict: components["schemas"]["Verdict"] | null;
        };
        /**
         * WorkerReport
         * @description The worker's own claim of completion: evidence, never the outcome.
         */
        WorkerReport: {
            /** @description What was done. */
            summary: string;
            /** @description `complete`, `partial` or `failed`. */
            status: string;
            /** @description `high`, `medium` or `low`. */
            confidence: string | null;
            /** @description Files it left. */
            artifacts: components["schemas"]["ReportedFile"][];
            /** @description What stood in the way. */
            blockers: string[];
            /** @description What the requester should look at. */
            warnings: string[];
        };
        /**
         * ReportedFile
         * @description A file that a worker says it left.
         */
        ReportedFile: {
            /** @description As it was named. */
            path: string;
            /** @description In the worker's words. */
            description: string | null;
        };
        /**
         * RunLink
         * @description A run that another one waits for, or spawned.
         */
        RunLink: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description How it ended; null while it is active. */
            outcome: components["schemas"]["Outcome"] | null;
        };
        /**
         * Delivery
         * @description How the end of a run was handed over.
         */
        Delivery: {
            /** @description The session that is told. */
            target: string;
            /** @description The newest ones. */
            tries: components["schemas"]["DeliveryTry"][];
            /** @description So many there were. */
            triesTotal: number;
            /** @description In a row. */
            failures: number;
            /** @description When it is tried again. */
            dueAt: string | null;
        };
        /**
         * DeliveryTry
         * @description One try at telling the requester how a run ended.
         */
        DeliveryTry: {
            /** @description When. */
            triedAt: string | null;
            /** @description The session that was told. */
            target: string;
            /** @description How deep that session is; 0 = top level. */
            requesterDepth: number;
            /** @description It is the session of a run. */
            nested: boolean;
            /** @description How it was tried. */
            routeMode: string;
            /** @description What was tried, in order. */
            phases: string[];
            /** @description What it came to: `{kind, …}`. */
            outcome: {
                [key: string]: unknown;
            };
            /** @description The same in every try of one announcement. */
            idempotencyKey: string;
        };
        /**
         * Verification
         * @description What the contract found.
         */
        Verification: {
            /** @description `passed`, `failed`, or `skipped`: it never ran, or could not check. */
            status: string;
            /** @description One for each thing the contract asks for. */
            checks: components["schemas"]["Check"][];
            /** @description When. */
            verifiedAt: string | null;
            /** @description All of it held before the work began: `passed` proves nothing then. */
            vacuous: boolean;
            /** @description Of a run with a worktree, for information: what it changed. */
            changes: components["schemas"]["Changes"] | null;
        };
        /**
         * Check
         * @description One check of a contract.
         */
        Check: {
            /** @description `artifact`, `change`, `completion_report`, `command` or `judge`. */
            type: string;
            /** @description The file, the path or the command. */
            target: string;
            /** @description Whether it holds. */
            passed: boolean;
            /** @description Why it does not. */
            reason: string | null;
            /** @description What was found. */
            evidence: string | null;
        };
        /**
         * ResultFile
         * @description A file that the contract asks for, or that the worker reported.
         */
        ResultFile: {
            /** @description As it was named. */
            path: string;
            /** @description In the worker's words. */
            description: string | null;
            /** @description A check of the contract passed for it, and had not passed before the work. */
            verified: boolean;
        };
        /**
         * Cancellation
         * @description Who asked for the end of a run.
         */
        Cancellation: {
            /** @description A session. */
            by: string;
            /** @description In its words. */
            reason: string | null;
            /** @description When. */
            requestedAt: string | null;
        };
        /**
         * RunForest
         * @description Trees of runs; an agent's are those of the runs it asked for.
         */
        RunForest: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description The newest `limit` that fit and that no other run spawned, oldest first. */
            roots: components["schemas"]["RunNode"][];
            /** @description So many more are archived: `archived=1` shows them. At most 1,000 are counted. */
            hidden: number;
            /** @description More than `hidden` are archived. */
            hiddenIsBound: boolean;
        };
        /**
         * RunNode
         * @description A run in a tree, with those it spawned.
         */
        RunNode: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description How it ended; null until then. */
            outcome: components["schemas"]["Outcome"] | null;
            /** @description The configured agent. */
            agentId: string;
            /** @description The session its newest attempt works in. */
            sessionKey: string;
            /** @description One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase. */
            runStatus: string;
            /** @description What its worker said last of how far it is. */
            latestProgress: components["schemas"]["Progress"] | null;
            /** @description Open questions of its worker. */
            pendingRequestCount: number;
            /** @description What its own attempts used; null when nobody reported anything. */
            usage: components["schemas"]["Usage"] | null;
            /** @description What it and everything below it used; null for a run without children. */
            subtreeUsage: components["schemas"]["TreeUsage"] | null;
            /** @description Why it is where it is, in one sentence. */
            why: string | null;
            /** @description Its contract was met before the work began: that it is met proves nothing. */
            vacuous: boolean;
            /** @description What it waits for, as data; null = nothing: it is at work, or has ended. */
            wait: components["schemas"]["Wait"] | null;
            /** @description When its worker last gave a sign of life; null before it began, and once it has ended. */
            lastSignAt: string | null;
            /** @description What its worker says of its work; null = nothing yet. */
            claim: components["schemas"]["Claim"] | null;
            /** @description What its contract found; null without a contract, and until it is known. */
            verdict: components["schemas"]["Verdict"] | null;
            /** @description How it stands to its own budget; null = it has none. */
            budget: components["schemas"]["BudgetState"] | null;
            /** @description The nearest run above whose budget pays for it, while it is open; null = it has a budget of its own, or none is above it. */
            chargedTo: components["schemas"]["NamedRun"] | null;
            /** @description When it is cancelled, as somebody asked; until then it can be taken back. */
            cancelAt: string | null;
            /** @description When its turn is ended, as somebody asked; until then it can be taken back. */
            interruptAt: string | null;
            /** @description When its end was read, or marked as read; null = it is unread, or has not ended. */
            readAt: string | null;
            /** @description `passed`, `failed` or `skipped`, or where verifying stands. */
            verification: string | null;
            /** @description Since it began, until it ended. */
            elapsedMs: number | null;
            /** @description The runs it spawned. */
            children: components["schemas"]["RunNode"][];
            /** @description Of the runs it spawned not all are here; null = they are. `GET /v1/runs?parent=` has them page by page. */
            truncated: components["schemas"]["Truncated"] | null;
        };
        /**
         * RunPage
         * @description A page of runs, newest first.
         */
        RunPage: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description At most `limit`. */
            runs: components["schemas"]["RunRow"][];
            /** @description So many fit. Counting ends at 1,000, or at the end of the page: see `totalIsBound`. */
            total: number | null;
            /** @description More than `total` fit. */
            totalIsBound: boolean;
            /** @description As asked for. */
            limit: number | null;
            /** @description So many newer ones were left out. */
            offset: number;
            /** @description So many more fit that are archived: `archived=1` shows them. At most 1,000 are counted. */
            hidden: number;
            /** @description More than `hidden` are archived. */
            hiddenIsBound: boolean;
            /** @description Runs, messages and events that are damaged and left out; `doctor` says why. */
            setAside: string[];
            /** @description What schedules start next, the first first; for operators, at most three. */
            scheduled: components["schemas"]["NextTime"][];
        };
        /**
         * NextTime
         * @description What a schedule will start.
         */
        NextTime: {
            /** @description Of the schedule. */
            name: string;
            /** @description When it is due next. */
            nextAt: string | null;
        };
        /**
         * RunState
         * @description Where a run is, in short: the answer to a change of it, or one that a wait still waits for.
         */
        RunState: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label?: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase?: string;
            /** @description How it ended; null until then. */
            outcome?: components["schemas"]["Outcome"] | null;
            /** @description What the call came to, such as `cancelling` or `already ended`. */
            status?: string | null;
            /** @description Why it is where it is, in one sentence. */
            why?: string | null;
        };
        /**
         * RunStatus
         * @description How a run is doing now: its row, and what its worker was last seen at.
         */
        RunStatus: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description How it ended; null until then. */
            outcome: components["schemas"]["Outcome"] | null;
            /** @description The configured agent. */
            agentId: string;
            /** @description The session its newest attempt works in. */
            sessionKey: string;
            /** @description One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase. */
            runStatus: string;
            /** @description What its worker said last of how far it is. */
            latestProgress: components["schemas"]["Progress"] | null;
            /** @description Open questions of its worker. */
            pendingRequestCount: number;
            /** @description What its own attempts used; null when nobody reported anything. */
            usage: components["schemas"]["Usage"] | null;
            /** @description What it and everything below it used; null for a run without children. */
            subtreeUsage: components["schemas"]["TreeUsage"] | null;
            /** @description Why it is where it is, in one sentence. */
            why: string | null;
            /** @description Its contract was met before the work began: that it is met proves nothing. */
            vacuous: boolean;
            /** @description What it waits for, as data; null = nothing: it is at work, or has ended. */
            wait: components["schemas"]["Wait"] | null;
            /** @description When its worker last gave a sign of life; null before it began, and once it has ended. */
            lastSignAt: string | null;
            /** @description What its worker says of its work; null = nothing yet. */
            claim: components["schemas"]["Claim"] | null;
            /** @description What its contract found; null without a contract, and until it is known. */
            verdict: components["schemas"]["Verdict"] | null;
            /** @description Its own budget; null = none. */
            budget: components["schemas"]["BudgetUse"] | null;
            /** @description The nearest run above whose budget pays for it, while it is open; null = it has a budget of its own, or none is above it. */
            chargedTo: components["schemas"]["NamedRun"] | null;
            /** @description When it is cancelled, as somebody asked; until then it can be taken back. */
            cancelAt: string | null;
            /** @description When its turn is ended, as somebody asked; until then it can be taken back. */
            interruptAt: string | null;
            /** @description When its end was read, or marked as read; null = it is unread, or has not ended. */
            readAt: string | null;
            /** @description The runtime that runs it. */
            runtime: string | null;
            /** @description The session that asked for it. */
            requester: string;
            /** @description 1 = spawned by a top-level session. */
            depth: number;
            /** @description The newest attempt's number; 0 before the first. */
            attempt: number;
            /** @description So many it has at most, the retry after a failed verification not counted. */
            attemptsMax: number;
            /** @description The oldest of them. */
            blockedReason: string | null;
            /** @description When it was spawned. */
            createdAt: string | null;
            /** @description When its first attempt began. */
            startedAt: string | null;
            /** @description When its outcome was known. */
            endedAt: string | null;
            /** @description When it entered its phase. */
            phaseSinceAt: string | null;
            /** @description At most 500 characters of it. */
            task: string | null;
            /** @description Words to find it by. */
            tags: string[];
            /** @description The model it was given; null = the program's own choice. */
            model: string | null;
            /** @description The directory of its project, absolute. */
            directory: string;
            /** @description The plan it is a step of; null = none. */
            planId: string | null;
            /** @description As that was given. */
            planName: string | null;
            /** @description The run that spawned it; null for a top-level session's. */
            requesterRun: string | null;
            /** @description The runs below it, by state; only in lists of roots, null = there are none. */
            below: components["schemas"]["BelowCounts"] | null;
            /** @description How long it has been at work, in words. */
            took: string | null;
            /** @description As its receipt said it. */
            granted: components["schemas"]["Granted"] | null;
            /** @description How long it has been at work; null before it began. */
            tookMs: number | null;
            /** @description As `runStatus`. */
            state: string;
            /** @description As `sessionKey`. */
            sessionId: string;
            /** @description Of its own attempts, in US dollars. */
            costUsd: number | null;
            /** @description Of its own attempts. */
            tokensIn: number | null;
            /** @description Of its own attempts. */
            tokensOut: number | null;
            /** @description Calls of tools so far. */
            toolsUsed: number;
            /** @description What its worker was last seen at: `editing src/bridge.py`. */
            lastActivity: string | null;
            /** @description When that was. */
            lastActivityAt: string | null;
            /** @description The same in words: `30s ago`. */
            lastActivityAge: string | null;
            /** @description The same as a duration. */
            lastActivityAgeMs: number | null;
            /** @description Of its model's context window. */
            contextPercent: number | null;
            /** @description In its context. */
            contextTokens: number | null;
            /** @description Its open questions. */
            pendingRequests: components["schemas"]["PendingRequest"][];
            /** @description Runs it spawned that have not ended. */
            childrenActive: number;
            /** @description Runs it spawned. */
            childrenTotal: number;
            /** @description When it is stopped at the latest; null = never, or it has ended, or stands still. */
            deadline: string | null;
            /** @description It starts nothing until it is resumed; a command at work stands still. */
            paused: boolean;
            /** @description What it waits for of its model's provider. */
            waiting: string | null;
        };
        /**
         * Granted
         * @description What a run was given to work with; fixed at its spawn.
         */
        Granted: {
            /** @description The model; null = the program's own choice. */
            resolvedModel: string | null;
            /** @description The tools it was narrowed to; null = what its runtime offers. */
            effectiveTools: string[] | null;
            /** @description The tools it was denied. */
            toolsDeny: string[];
            /** @description What its worker may do; null = of a run from before there were levels. */
            access: components["schemas"]["AccessAnswer"] | null;
            /** @description Where it works, absolute. */
            cwd: string;
        };
        /**
         * PendingRequest
         * @description An open question, in a status.
         */
        PendingRequest: {
            /** @description `<runId>:q<n>`. */
            requestId: string;
            /** @description At most 500 characters of it. */
            question: string;
            /** @description Possible answers. */
            options: string[];
            /** @description Of a notice; null = a question, whose worker waits. */
            priority: string | null;
            /** @description When. */
            askedAt: string | null;
            /** @description Until when it stands. */
            deadlineAt: string | null;
        };
        /**
         * SchedulePage
         * @description All schedules, oldest first.
         */
        SchedulePage: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description Each with what became of its newest times. */
            schedules: components["schemas"]["ScheduleRow"][];
        };
        /**
         * ScheduleStart
         * @description What a schedule started by hand.
         */
        ScheduleStart: {
            /** @description In the order of its steps. */
            runIds: string[];
            /** @description Of its plan; null = it is one run. */
            planId: string | null;
        };
        /**
         * SentMessage
         * @description What became of a message to a session: which run has it, and whether it started that run.
         */
        SentMessage: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description `steered` into its live turn, `queued` for its next one, or `accepted`: it started a run. */
            status: string;
            /** @description The run whose session it continues. */
            continues: string | null;
            /** @description The conversation outside that its session is bound to. */
            threadId: string | null;
            /** @description What its requester should know. */
            warnings: string[];
            /** @description The call was made before, with the same key; nothing new was started. */
            repeated: boolean;
            /** @description The session of that run. */
            sessionKey: string;
            /** @description The message started it. */
            isNew: boolean;
        };
        /**
         * Series
         * @description What ended attempts came to over time.
         */
        Series: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description What is added up together: `outcome`, `agent`, `model`; `cost` and `tokens` = everything. */
            by: string;
            /** @description `hour` or `day`, in UTC. */
            bucket: string;
            /** @description The oldest first, also those without attempts. */
            buckets: components["schemas"]["SeriesBucket"][];
            /** @description Of each group over the whole time, the costliest first. */
            sums: components["schemas"]["SeriesSum"][];
            /** @description Of everything over the whole time. */
            total: components["schemas"]["SeriesSum"];
        };
        /**
         * SeriesBucket
         * @description One hour or day.
         */
        SeriesBucket: {
            /** @description When it begins; it ends where the next one begins. */
            beginsAt: string | null;
            /** @description One for each group of which an attempt ended; none = no attempt ended. */
            sums: components["schemas"]["SeriesSum"][];
            /** @description Of all groups together. */
            total: components["schemas"]["SeriesSum"];
        };
        /**
         * SeriesSum
         * @description What attempts that ended within one time came to.
         */
        SeriesSum: {
            /** @description The outcome, agent or model; null = all together, or a model that was not chosen. */
            name: string | null;
            /** @description So many ended. */
            attempts: number;
            /** @description First attempts among them. */
            runs: number;
            /** @description Tokens read; null = of none it is known. */
            tokensIn: number | null;
            /** @description Tokens written; null = of none it is known. */
            tokensOut: number | null;
            /** @description Of so many of the attempts the tokens are known. */
            tokensKnownOf: number;
            /** @description In US dollars; null = of none it is known. */
            costUsd: number | null;
            /** @description Of so many of the attempts the cost is known. */
            costKnownOf: number;
        };
        /**
         * Stopping
         * @description The daemon stops; workers continue, the next daemon adopts them.
         */
        Stopping: {
            /** @description Always `stopping`. */
            status: string;
            /** @description Of its process. */
            pid: number;
        };
        /**
         * StoredResult
         * @description The result of a run, and what proves it.
         */
        StoredResult: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description How it ended; null until then. */
            outcome: components["schemas"]["Outcome"] | null;
            /** @description What the worker gave; the last 32 KiB of it when it is longer. */
            result: string | null;
            /** @description Of the whole. */
            resultBytes: number;
            /** @description `result` is only the end of it; `GET /v1/runs/{sel}/result/text` has what is kept. */
            truncated: boolean;
            /** @description So much of it can be read; less than `resultBytes` when it is above `retention.max_result_mb`: then the end of it. */
            keptBytes: number;
            /** @description The worker's claim of completion. */
            report: components["schemas"]["WorkerReport"] | null;
            /** @description What its contract found; null without a contract. */
            verification: components["schemas"]["Verification"] | null;
            /** @description When the one retry after a failed verification was begun; null = it was not. */
            retryAttemptedAt: string | null;
            /** @description What its attempts used; null when nobody reported anything. */
            usage: components["schemas"]["Usage"] | null;
            /** @description The contract's files, then those reported. */
            artifacts: components["schemas"]["ResultFile"][];
            /** @description The end of what it said, when it gave no result. */
            lastWords: string | null;
            /** @description Files of its contract that exist, when it ended badly. */
            filesLeft: string[];
            /** @description Its worktree, and what it changed there. */
            workspace: components["schemas"]["Workspace"] | null;
        };
        /**
         * Suggestions
         * @description Who fits, the best first; nobody is started.
         */
        Suggestions: {
            /** @description At most `limit`. */
            suggestions: components["schemas"]["SuggestedAgent"][];
            /** @description So many could be chosen. */
            total: number;
        };
        /**
         * SuggestedAgent
         * @description An agent, and why it fits.
         */
        SuggestedAgent: {
            /** @description Its id. */
            id: string;
            /** @description The runtime that runs it; null = it only calls. */
            runtime: string | null;
            /** @description What it is for, at most 500 characters. */
            description: string | null;
            /** @description What it is good at. */
            tags: string[];
            /** @description `free`, `cheap`, `medium` or `expensive`. */
            costTier: string | null;
            /** @description How long it takes, in the operator's words. */
            typicalLatency: string | null;
            /** @description Which of `costTier` and `typicalLatency` its card leaves open, and its own attempts say. */
            measured: string[];
            /** @description What else to know, at most 500 characters. */
            notes: string | null;
            /** @description What it has to do now. */
            load: components["schemas"]["AgentLoad"];
            /** @description What its attempts came to; null = nothing is known. */
            record: components["schemas"]["ShortRecord"] | null;
            /** @description The higher the better. */
            score: number;
            /** @description What speaks for and against it. */
            reasons: string[];
        };
        /**
         * AgentLoad
         * @description What an agent has to do now, and how full its lane is at the caller's depth.
         */
        AgentLoad: {
            /** @description Its runs at work. */
            active: number;
            /** @description Its runs that wait for a slot. */
            queued: number;
            /** @description Whose slots they need. */
            lane: string;
            /** @description Slots that are taken. */
            used: number;
            /** @description Slots there are. */
            slots: number;
        };
        /**
         * ShortRecord
         * @description As much of a track record as is worth a place in a context.
         */
        ShortRecord: {
            /** @description In words. */
            text: string;
            /** @description How many ended in which way. */
            outcomes: {
                [key: string]: number;
            };
            /** @description Of all that say something of the agent. */
            success: components["schemas"]["Rate"] | null;
            /** @description Of those with a contract. */
            verified: components["schemas"]["Rate"] | null;
            /** @description How long the newest took. */
            took: components["schemas"]["RuntimeSpread"] | null;
            /** @description Of all attempts whose cost is known. */
            costUsd: number | null;
        };
        /**
         * Rate
         * @description A share with its 95 % interval (Wilson).
         */
        Rate: {
            /** @description So many were. */
            count: number;
            /** @description Of so many. */
            n: number;
            /** @description From 0 to 1. */
            rate: number;
            /** @description The interval's lower end. */
            low: number;
            /** @description The interval's upper end. */
            high: number;
        };
        /**
         * RuntimeSpread
         * @description How long the newest attempts took.
         */
        RuntimeSpread: {
            /** @description Half of them took at most so long. */
            p50Ms: number;
            /** @description 95 of 100 took at most so long. */
            p95Ms: number;
        };
        /**
         * SweepResult
         * @description What a sweep did.
         */
        SweepResult: {
            /** @description Runs that were put away. */
            archived: number;
            /** @description Runs that were deleted. */
            pruned: number;
            /** @description Runs whose next step was done again. */
            redriven: number;
            /** @description Processes that nobody waits for. */
            orphans: components["schemas"]["Orphan"][];
        };
        /**
         * Taken
         * @description What became of a worker's report, progress or notice; what does not apply is left out.
         */
        Taken: {
            /** @description For which run it spoke. */
            runId?: string;
            /** @description `stored`, `rate_limited` (not stored) or `latest_only`. */
            status?: string;
            /** @description When it may speak again. */
            retryAfterSeconds?: number | null;
            /** @description What it should know. */
            note?: string | null;
        };
        /**
         * Timeline
         * @description A page of a run's events, in order.
         */
        Timeline: {
            /** @description Whose. */
            runId: string;
            /** @description At most `limit`. */
            events: components["schemas"]["TimelineEvent"][];
            /** @description The `afterSeq` of the next page; null = there is none. */
            nextSeq: number | null;
        };
        /**
         * TimelineEvent
         * @description One event of a run, and the phase it was in afterwards.
         */
        TimelineEvent: {
            /** @description Its number in the run, from 1. */
            seq: number;
            /** @description When. */
            occurredAt: string | null;
            /** @description Its name: `Spawned`, `AttemptStarted`, … */
            type: string;
            /** @description Its own fields; long texts are cut. */
            data: {
                [key: string]: unknown;
            };
            /** @description The same event with the same key happens once. */
            key: string | null;
            /** @description The run's, after it. */
            phase: string | null;
            /** @description It came late or twice, and changed nothing. */
            stale: boolean;
        };
        /**
         * ToolAnswer
         * @description What a tool answers; one that refuses answers, too.
         */
        ToolAnswer: {
            /** @description For reading. */
            text: string;
            /** @description The same as data. */
            structured: {
                [key: string]: unknown;
            };
            /** @description It refused; `structured` says why. */
            isError: boolean;
            /** @description Messages that are handed over, to be acknowledged. */
            offered: string[];
        };
        /**
         * ToolList
         * @description The tools that the caller is shown.
         */
        ToolList: {
            /** @description In order. */
            tools: components["schemas"]["ToolDescription"][];
        };
        /**
         * ToolDescription
         * @description A tool that the caller is shown.
         */
        ToolDescription: {
            /** @description Its name. */
            name: string;
            /** @description What it does. */
            description: string;
            /** @description `requester` or `worker`. */
            audience: string;
            /** @description JSON Schema of its arguments. */
            inputSchema: {
                [key: string]: unknown;
            };
            /** @description JSON Schema of its answer as data. */
            outputSchema: {
                [key: string]: unknown;
            };
            /** @description Hints: `readOnlyHint`, `destructiveHint`, `idempotentHint`. */
            annotations: {
                [key: string]: boolean;
            };
        };
        /**
         * TrackRecords
         * @description What ended attempts came to.
         */
        TrackRecords: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description What is counted together: `agent`, `tag` or `model`. */
            by: string;
            /** @description UTC days up to and with today. */
            days: number;
            /** @description One for each agent, tag or model. */
            stats: components["schemas"]["TrackRecord"][];
        };
        /**
         * TrackRecord
         * @description What the attempts of one agent, tag or model came to.
         */
        TrackRecord: {
            /** @description Of the agent, tag or model; null = without a tag, or a model that was not chosen. */
            name: string | null;
            /** @description So many. */
            runs: number;
            /** @description So many attempts of these runs ended. */
            attemptCount: number;
            /** @description How many ended in which way. */
            outcomes: {
                [key: string]: number;
            };
            /** @description Why those that were not ok were not, the most frequent first. */
            reasons: {
                [key: string]: number;
            };
            /** @description Of all that say something of the agent; null without any. */
            success: components["schemas"]["Rate"] | null;
            /** @description Of those with a contract; null without any. */
            verified: components["schemas"]["Rate"] | null;
            /** @description How long the newest took. */
            took: components["schemas"]["RuntimeSpread"] | null;
            /** @description Of all attempts whose tokens are known. */
            tokens: components["schemas"]["TokenSum"];
            /** @description Of so many attempts. */
            tokensKnown: number;
            /** @description Of all attempts whose cost is known; null when none is. */
            costUsd: number | null;
            /** @description Of so many attempts. */
            costKnown: number;
        };
        /**
         * TokenSum
         * @description Tokens of all attempts whose tokens are known.
         */
        TokenSum: {
            /** @description Read. */
            input: number | null;
            /** @description Written. */
            output: number | null;
        };
        /**
         * WaitResult
         * @description What a wait came to; never an error when the time is up.
         */
        WaitResult: {
            /** @description Those that ended. */
            completed: components["schemas"]["RunResult"][];
            /** @description Those that did not. */
            pending: components["schemas"]["RunState"][];
            /** @description Those that cannot be waited for. */
            errors: components["schemas"]["WaitError"][];
            /** @description Questions, blockers and limits of pending runs that this session was not told of by a wait before. */
            needs: components["schemas"]["AttentionItem"][];
            /** @description Messages that are offered by this answer, to be acknowledged. */
            messages: string[];
        };
        /**
         * RunResult
         * @description How a run ended and what it left behind, as it is handed over.
         */
        RunResult: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description How it ended. */
            outcome: components["schemas"]["Outcome"];
            /** @description What the worker gave; the last 32 KiB of it when it is longer. */
            result: string | null;
            /** @description Of the whole. */
            resultBytes: number;
            /** @description `result` is only the end of it; `GET /v1/runs/{sel}/result/text` has what is kept. */
            truncated: boolean;
            /** @description So much of it can be read; less than `resultBytes` when it is above `retention.max_result_mb`: then the end of it. */
            keptBytes: number;
            /** @description The worker's claim of completion. */
            report: components["schemas"]["WorkerReport"] | null;
            /** @description What its contract found; null without a contract. */
            verification: components["schemas"]["Verification"] | null;
            /** @description When the one retry after a failed verification was begun; null = it was not. */
            retryAttemptedAt: string | null;
            /** @description What its attempts used; null when nobody reported anything. */
            usage: components["schemas"]["Usage"] | null;
            /** @description The contract's files, then those reported. */
            artifacts: components["schemas"]["ResultFile"][];
            /** @description The end of what it said, when it gave no result. */
            lastWords: string | null;
            /** @description Files of its contract that exist, when it ended badly. */
            filesLeft: string[];
            /** @description Its worktree, and what it changed there. */
            workspace: components["schemas"]["Workspace"] | null;
            /** @description Of its announcement: to be acknowledged by whoever reads this. */
            messageId: string | null;
            /** @description The announcement's text. */
            announcement: string | null;
        };
        /**
         * WaitError
         * @description A run that cannot be waited for.
         */
        WaitError: {
            /** @description As it was named. */
            runId: string;
            /** @description Why not. */
            error: string;
        };
        /**
         * Why
         * @description Why a run is where it is.
         */
        Why: {
            /** @description Its id; it never changes. */
            runId: string;
            /** @description The name it was given, or one made from its task. */
            label: string;
            /** @description Its place in the life of a run: `queued`, `running`, `completed`, … */
            phase: string;
            /** @description One sentence for now. */
            why: string;
            /** @description One line for each event and what it led to, the newest ones. */
            steps: components["schemas"]["WhyStep"][];
            /** @description Every try at telling its requester. */
            deliveryTries: components["schemas"]["DeliveryTry"][];
        };
        /**
         * WhyStep
         * @description One line of a run's history.
         */
        WhyStep: {
            /** @description When. */
            occurredAt: string | null;
            /** @description What happened. */
            text: string;
        };
        /**
         * WorktreeDiff
         * @description What a run changed in its worktree since the commit that it began from.
         */
        WorktreeDiff: {
            /** @description The newest event that it knows of: `GET /v1/events?after=` goes on behind it. */
            seq: number;
            /** @description The daemon's clock, when it was made. */
            nowAt: string | null;
            /** @description What is left out of it here; null = nothing is. */
            truncated: components["schemas"]["Truncated"] | null;
            /** @description As `cursor` it gives the next page; null = there is none, or the list has no pages. */
            nextCursor: string | null;
            /** @description Whose. */
            runId: string;
            /** @description Only of this file; null = of all. */
            path: string | null;
            /** @description As `git diff` writes it, files that git does not know yet included; at most 1 MiB. */
            text: string;
            /** @description Of the whole. */
            textBytes: number;
            /** @description `text` is only the beginning of it. */
            isCut: boolean;
        };
    };
    responses: {
        /** @description Why not (RFC 9457); `code` says it to programs. */
        Problem: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /** @description The same key within 24 hours is the same run. */
        "Idempotency-Key": string;
        /** @description When what is handed over counts as read: acknowledged, or read from the socket. */
        "X-Subagents-Ack": "explicit" | "auto";
        /** @description Names a call that may be repeated. */
        "X-Subagents-Call-Id": string;
        /** @description The last number that was seen; browsers send it by themselves. */
        "Last-Event-ID": number;
        /** @description Some of the bytes, such as `bytes=0-1023`: the answer is then a 206. */
        Range: string;
        /** @description In whose name the call is made; a worker's token is stronger. */
        "X-Subagents-Session": string;
        /** @description Names the client process: messages are offered to it. */
        "X-Subagents-Reader": string;
        /** @description `agent` = a model drives the client. */
        "X-Subagents-Caller": string;
        /** @description The client's directory, percent-encoded. */
        "X-Subagents-Cwd": string;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    run_routes_list_runs: {
        parameters: {
            query?: {
                /** @description Only runs with this label. */
                label?: string;
                /** @description Only runs in these phases, or that lists call so. */
                phase?: ("waiting" | "queued" | "spawning" | "running" | "ending" | "verifying" | "retry_wait" | "announcing" | "announce_deferred" | "cleanup_pending" | "completed" | "completed_giveup" | "ok" | "partial" | "error" | "timeout" | "cancelled" | "lost" | "failed" | "blocked" | "paused")[];
                /** @description Only runs with these outcomes, or that lists call so. */
                outcome?: ("waiting" | "queued" | "spawning" | "running" | "ending" | "verifying" | "retry_wait" | "announcing" | "announce_deferred" | "cleanup_pending" | "completed" | "completed_giveup" | "ok" | "partial" | "error" | "timeout" | "cancelled" | "lost" | "failed" | "blocked" | "paused")[];
                /** @description Only runs of this agent. */
                agentId?: string;
                /** @description Only runs that this session asked for. */
                requester?: string;
                /** @description Only runs that work in this directory or below it; absolute. */
                directory?: string;
                /** @description Only runs with this tag; with commas: with all of these. */
                tag?: string;
                /** @description Only runs spawned since then: 5m, 2h, 1d ago, or an ISO time. */
                since?: string;
                /** @description Only runs spawned before then: 5m, 2h, 1d ago, or an ISO time. */
                until?: string;
                /** @description Only runs that were given this model. */
                model?: string;
                /** @description Only runs whose label or task contains this, or whose id begins with it. */
                q?: string;
                /** @description Archived runs, too. */
                archived?: "0" | "1" | "true" | "false";
                /** @description Only this run and those below it. */
                tree?: string;
                /** @description Only the steps of this plan: its id, a unique prefix of it, its name or last. */
                plan?: string;
                /** @description Only runs that this run spawned itself. */
                parent?: string;
                /** @description Only runs that no other run spawned, each with counts of those below it. */
                roots?: "0" | "1" | "true" | "false";
                /** @description At most so many. */
                limit?: number;
                /** @description So many are left out before; for people's pages. */
                offset?: number;
                /** @description The page behind: `nextCursor` of the page before, with the same filters. */
                cursor?: string;
                /** @description Which come first, by when they were spawned. `ended`: only ended runs, the last end first. */
                sort?: "newest" | "oldest" | "ended" | "ended_oldest";
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunPage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    spawn_routes_spawn: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key within 24 hours is the same run. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SpawnBody"];
            };
        };
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SpawnReceipt"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    spawn_routes_dry_spawn: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key within 24 hours is the same run. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SpawnBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    plan_routes_list_plans: {
        parameters: {
            query?: {
                /** @description Only runs that this session asked for. */
                requester?: string;
                /** @description Only runs that work in this directory or below it; absolute. */
                directory?: string;
                /** @description Only runs spawned since then: 5m, 2h, 1d ago, or an ISO time. */
                since?: string;
                /** @description Only runs spawned before then: 5m, 2h, 1d ago, or an ISO time. */
                until?: string;
                /** @description Archived runs, too. */
                archived?: "0" | "1" | "true" | "false";
                /** @description At most so many. */
                limit?: number;
                /** @description So many are left out before; for people's pages. */
                offset?: number;
                /** @description The page behind: `nextCursor` of the page before, with the same filters. */
                cursor?: string;
                /** @description Which come first, by when they were spawned. */
                sort?: "newest" | "oldest";
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanPage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    spawn_routes_spawn_plan: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key within 24 hours is the same run. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PlanBody"];
            };
        };
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanReceipt"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    spawn_routes_dry_plan: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key within 24 hours is the same run. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PlanBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    spawn_routes_retry_plan: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A plan: its id, a unique beginning of it, its name, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanReceipt"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    spawn_routes_retry: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SpawnReceipt"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    plan_routes_show: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A plan: its id, a unique beginning of it, its name, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanDetail"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    plan_routes_cancel: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A plan: its id, a unique beginning of it, its name, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanDetail"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    plan_routes_withdraw_cancel: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A plan: its id, a unique beginning of it, its name, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanDetail"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    schedule_routes_list_schedules: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SchedulePage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    schedule_routes_add: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleBody"];
            };
        };
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    schedule_routes_show: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    schedule_routes_remove: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    schedule_routes_pause: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    schedule_routes_resume: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    schedule_routes_run_now: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleStart"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_roots: {
        parameters: {
            query?: {
                /** @description Only runs with this label. */
                label?: string;
                /** @description Only runs in these phases, or that lists call so. */
                phase?: ("waiting" | "queued" | "spawning" | "running" | "ending" | "verifying" | "retry_wait" | "announcing" | "announce_deferred" | "cleanup_pending" | "completed" | "completed_giveup" | "ok" | "partial" | "error" | "timeout" | "cancelled" | "lost" | "failed" | "blocked" | "paused")[];
                /** @description Only runs with these outcomes, or that lists call so. */
                outcome?: ("waiting" | "queued" | "spawning" | "running" | "ending" | "verifying" | "retry_wait" | "announcing" | "announce_deferred" | "cleanup_pending" | "completed" | "completed_giveup" | "ok" | "partial" | "error" | "timeout" | "cancelled" | "lost" | "failed" | "blocked" | "paused")[];
                /** @description Only runs of this agent. */
                agentId?: string;
                /** @description Only runs that this session asked for. */
                requester?: string;
                /** @description Only runs that work in this directory or below it; absolute. */
                directory?: string;
                /** @description Only runs with this tag; with commas: with all of these. */
                tag?: string;
                /** @description Only runs spawned since then: 5m, 2h, 1d ago, or an ISO time. */
                since?: string;
                /** @description Only runs spawned before then: 5m, 2h, 1d ago, or an ISO time. */
                until?: string;
                /** @description Only runs that were given this model. */
                model?: string;
                /** @description Only runs whose label or task contains this, or whose id begins with it. */
                q?: string;
                /** @description Archived runs, too. */
                archived?: "0" | "1" | "true" | "false";
                /** @description At most so many. */
                limit?: number;
                /** @description So many are left out before; for people's pages. */
                offset?: number;
                /** @description The page behind: `nextCursor` of the page before, with the same filters. */
                cursor?: string;
                /** @description Which come first, by when they were spawned. */
                sort?: "newest" | "oldest";
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunForest"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_show: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunDetail"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_status: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunStatus"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_result: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_result_text: {
        parameters: {
            query?: {
                /** @description From this byte on. */
                offset?: number;
                /** @description At most this many bytes. */
                limit?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_tree: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunNode"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_timeline: {
        parameters: {
            query?: {
                /** @description Only events behind this number. */
                afterSeq?: number;
                /** @description At most so many. */
                limit?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeline"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_why: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Why"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_log: {
        parameters: {
            query?: {
                /** @description The first line, from 0; without it the newest come. */
                offset?: number;
                /** @description At most so many lines. */
                limit?: number;
                /** @description So many of the newest lines. */
                tail?: number;
                /** @description A regular expression that the line matches. */
                grep?: string;
                /** @description With grep: where it matches in each line, too. */
                hits?: "0" | "1" | "true" | "false";
                /** @description Only newer lines: 5m, 2h, 1d, or an ISO time. */
                since?: string;
                /** @description Only lines of these types. */
                type?: ("text" | "thinking" | "tool" | "error" | "system" | "user")[];
                /** @description Only lines of this attempt. */
                attempt?: number;
                /** @description Only lines behind this number. */
                afterSeq?: number;
                /** @description With afterSeq: wait so long for one. */
                waitSeconds?: number;
                /** @description A digest instead of lines. */
                summary?: "0" | "1" | "true" | "false";
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogPage"] | components["schemas"]["LogSummary"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_cancel: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_withdraw_cancel: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_steer: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SteerBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_pause: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_prioritize: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PriorityBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_resume: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_redeliver: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    run_routes_dismiss: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    artifact_routes_artifacts: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ArtifactPage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    artifact_routes_content: {
        parameters: {
            query?: {
                /** @description As `artifacts` has it, or one that a pattern there matches. */
                path?: string;
            };
            header?: {
                /** @description Some of the bytes, such as `bytes=0-1023`: the answer is then a 206. */
                Range?: components["parameters"]["Range"];
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description The range of bytes that was asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    artifact_routes_diff: {
        parameters: {
            query?: {
                /** @description Only of this file, from the root of the worktree. */
                path?: string;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorktreeDiff"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    session_routes_send: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SentMessage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    session_routes_interrupt: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    session_routes_withdraw_interrupt: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    session_routes_thread_message: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A thread: `threadId` in the receipt of a spawn with `thread: true`. */
                thread: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadBody"];
            };
        };
        responses: {
            /** @description Done. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SentMessage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_wait: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["WaitBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WaitResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_look_at_inbox: {
        parameters: {
            query?: {
                /** @description Read messages, too. */
                all?: "0" | "1" | "true" | "false";
                /** @description At most so many. */
                limit?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Inbox"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_take_inbox: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["InboxBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Inbox"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_acknowledge: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AckBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Acknowledged"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_attention: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Attention"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_ask: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AskBody"];
            };
        };
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerRequest"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_answer_of: {
        parameters: {
            query?: {
                /** @description Hold the line for an answer. */
                waitSeconds?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A worker's question: `<runId>:q<n>`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerRequest"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_respond: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A worker's question: `<runId>:q<n>`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RespondBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerRequest"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_report: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Report"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Taken"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_progress_of: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgressLog"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_progress: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProgressBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Taken"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_notify: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NotifyBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Taken"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inbox_routes_hold: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A run: its id, a unique beginning of it, its label, a session key, or `last`. */
                sel: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HoldBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestHold"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    tool_routes_list_tools: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    tool_routes_use_tool: {
        parameters: {
            query?: never;
            header?: {
                /** @description When what is handed over counts as read: acknowledged, or read from the socket. */
                "X-Subagents-Ack"?: components["parameters"]["X-Subagents-Ack"];
                /** @description Names a call that may be repeated. */
                "X-Subagents-Call-Id"?: components["parameters"]["X-Subagents-Call-Id"];
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A tool of `GET /v1/tools`. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Anything"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolAnswer"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    agent_routes_agents: {
        parameters: {
            query?: {
                /** @description The caller's directory, absolute; its project file counts. */
                cwd?: string;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    agent_routes_stats: {
        parameters: {
            query?: {
                /** @description What is counted together. */
                by?: "agent" | "tag" | "model";
                /** @description Only attempts of this agent. */
                agent?: string;
                /** @description Only attempts of runs with this tag. */
                tag?: string;
                /** @description Only attempts with this model. */
                model?: string;
                /** @description So far back. */
                days?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrackRecords"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    agent_routes_series: {
        parameters: {
            query?: {
                /** @description What is added up together. */
                by?: "outcome" | "agent" | "model" | "cost" | "tokens";
                /** @description For each hour or each day, in UTC. */
                bucket?: "hour" | "day";
                /** @description Only attempts of this agent. */
                agent?: string;
                /** @description Only attempts with this model. */
                model?: string;
                /** @description So far back. */
                days?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Series"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    agent_routes_suggestions: {
        parameters: {
            query?: {
                /** @description What is to be done. */
                hint?: string;
                /** @description What it should be good at, with commas between them. */
                tags?: string;
                /** @description What it may cost. */
                costTier?: "free" | "cheap" | "medium" | "expensive";
                /** @description At most so many. */
                limit?: number;
                /** @description The caller's directory, absolute; its project file counts. */
                cwd?: string;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Suggestions"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    daemon_routes_healthz: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    daemon_routes_readyz: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description Not ready, and why. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    daemon_routes_version: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DaemonVersion"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    daemon_routes_config: {
        parameters: {
            query?: {
                /** @description The caller's directory, absolute; its project file counts. */
                cwd?: string;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EffectiveConfig"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    daemon_routes_sweep: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SweepResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    daemon_routes_diagnostics: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Diagnostics"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    daemon_routes_shutdown: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stopping"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    event_routes_events: {
        parameters: {
            query?: {
                /** @description Only events behind this number; Last-Event-ID is stronger. */
                after?: number;
                /** @description Only events of this run. */
                run?: string;
                /** @description Only events of this run and those below it. */
                tree?: string;
                /** @description Only these events; excludes level. */
                types?: ("api_error" | "stuck" | "budget_alert" | "task_milestone" | "build_result" | "git_commit" | "context_pressure" | "subagent_spawn" | "failure_loop" | "cc_message" | "completion" | "run")[];
                /** @description Everything, or only what alerts tell. */
                level?: "alerts" | "all";
                /** @description Also each run that changed, as a row of lists: at most once a second. */
                rows?: "0" | "1" | "true" | "false";
                /** @description With JSON: hold the line so many seconds. */
                wait?: number;
            };
            header?: {
                /** @description The last number that was seen; browsers send it by themselves. */
                "Last-Event-ID"?: components["parameters"]["Last-Event-ID"];
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                    "application/json": components["schemas"]["EventPage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    event_routes_alerts: {
        parameters: {
            query?: {
                /** @description Only alerts of this run. */
                run?: string;
                /** @description Only alerts of these kinds. */
                kind?: ("api_error" | "stuck" | "budget_alert" | "task_milestone" | "build_result" | "git_commit" | "context_pressure" | "subagent_spawn" | "failure_loop")[];
                /** @description At most so many. */
                limit?: number;
                /** @description The page behind: `nextCursor` of the page before. */
                cursor?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertHistory"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    openapi_openapi: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    cluster_routes_show: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cluster"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    cluster_routes_drain: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DrainBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cluster"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    login_routes_own_login: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnLogin"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    login_routes_log_in: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnLogin"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    login_routes_log_out: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    login_routes_make_code: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CodeBody"];
            };
        };
        responses: {
            /** @description Done. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginCode"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    login_routes_list_logins: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    login_routes_revoke: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path: {
                /** @description A login: `loginId` in `GET /v1/logins`. */
                login: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginRow"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    graph_routes_graph: {
        parameters: {
            query?: {
                /** @description Of this plan: its id, a unique prefix of it, its name or last. */
                plan?: string;
                /** @description Of this run and those below it. */
                tree?: string;
                /** @description At most so many nodes. */
                limit?: number;
            };
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Graph"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    metrics_metrics: {
        parameters: {
            query?: never;
            header?: {
                /** @description In whose name the call is made; a worker's token is stronger. */
                "X-Subagents-Session"?: components["parameters"]["X-Subagents-Session"];
                /** @description Names the client process: messages are offered to it. */
                "X-Subagents-Reader"?: components["parameters"]["X-Subagents-Reader"];
                /** @description `agent` = a model drives the client. */
                "X-Subagents-Caller"?: components["parameters"]["X-Subagents-Caller"];
                /** @description The client's directory, percent-encoded. */
                "X-Subagents-Cwd"?: components["parameters"]["X-Subagents-Cwd"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
}
