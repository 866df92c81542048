-- 0004 permits: what is counted over all nodes of a cluster. See ports/permits.py.
--
-- Each node has one row of each lane and cap, written by itself alone. Who settles holds the lane's
-- or cap's lock from the sum over all rows to the commit; all of it is one statement of the node,
-- so nobody waits for a process that stands still.

-- In whose slots the runs of a partition are counted. What a node held that is over stays as it was
-- until the new owners of its partitions, who have loaded the runs, count them in their own.
CREATE TABLE {schema}.counted (
  part     integer PRIMARY KEY,
  identity text    COLLATE "C" NOT NULL
);

CREATE TABLE {schema}.permit (
  lane     text    COLLATE "C" NOT NULL,
  depth    integer NOT NULL,
  identity text    COLLATE "C" NOT NULL,
  held     integer NOT NULL CHECK (held >= 0),        -- slots its runs hold, or may take
  most     integer NOT NULL CHECK (most >= 0),        -- as many as it has use for
  turn     bigint  NOT NULL,                          -- grows; when that changed last
  PRIMARY KEY (lane, depth, identity)
);

-- What each node saw its runs use, from the first to the last thing that it saw. Of nodes that are
-- over there is one row together, whose identity is empty.
CREATE TABLE {schema}.cap_share (
  cap          text             COLLATE "C" NOT NULL,
  day          text             COLLATE "C" NOT NULL, -- empty where the cap is of no day
  identity     text             COLLATE "C" NOT NULL,
  used_tokens  bigint           NOT NULL,
  used_usd     double precision NOT NULL,
  kept_tokens  bigint           NOT NULL,             -- used, held, and what may be held besides
  kept_usd     double precision NOT NULL,
  cost_unknown integer          NOT NULL,
  PRIMARY KEY (cap, day, identity)
);

CREATE TABLE {schema}.gate (
  key      text        COLLATE "C" PRIMARY KEY,
  provider text        NOT NULL,
  until    timestamptz NOT NULL,                      -- by the clock of this server alone
  status   integer,
  waits    integer     NOT NULL,
  number   bigint      NOT NULL
);

-- After a demand of which the node does not know whether it was heard it begins to count anew: what
-- is still on its way here, and would say how things were, is refused.
CREATE TABLE {schema}.demander (
  identity   text   COLLATE "C" PRIMARY KEY,
  generation bigint NOT NULL
);

CREATE SEQUENCE {schema}.turn;

CREATE FUNCTION {schema}.is_alive(who text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM {schema}.node WHERE identity = who AND NOT is_over);
END
$$;

-- How many slots the node should have: equal parts of what nobody is stuck with, and what one has
-- no use for goes to the others. Where there are fewer slots than nodes, one each for those that
-- have none, the one that waited longest first; else whoever has more keeps what cannot be divided.
CREATE FUNCTION {schema}.fair_slots(its_lane text, its_depth integer, me text, slots integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  each     record;
  rest     integer := slots;
  sharers  integer := 0;
  is_short boolean;
  given    integer;
BEGIN
  SELECT slots - coalesce(sum(held) FILTER (WHERE NOT {schema}.is_alive(identity)), 0),
         count(*) FILTER (WHERE most > 0 AND {schema}.is_alive(identity))
  INTO rest, sharers FROM {schema}.permit WHERE lane = its_lane AND depth = its_depth;
  rest := greatest(rest, 0);
  is_short := rest < sharers;
  FOR each IN
    SELECT identity, least(most, slots) AS most FROM {schema}.permit
    WHERE lane = its_lane AND depth = its_depth AND permit.most > 0 AND {schema}.is_alive(identity)
    ORDER BY CASE WHEN is_short THEN -held ELSE least(permit.most, slots) END,
             held, CASE WHEN is_short AND held = 0 THEN -turn ELSE turn END, identity
  LOOP
    given := least(each.most, rest / sharers);
    IF each.identity = me THEN
      RETURN given;
    END IF;
    rest := rest - given;
    sharers := sharers - 1;
  END LOOP;
  RETURN 0;
END
$$;

CREATE FUNCTION {schema}.settle_lane(
  me text, its_lane text, its_depth integer, slots integer, used integer, its_most integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  mine   {schema}.permit;
  others integer;
  may    integer;
  keeps  integer;
BEGIN
  PERFORM pg_advisory_xact_lock(
    hashtextextended(format('subagents.permit.{schema}.%s.%s', its_depth, its_lane), 0));
  SELECT * INTO mine FROM {schema}.permit
  WHERE lane = its_lane AND depth = its_depth AND identity = me;
  IF mine.identity IS NULL THEN
    IF its_most = 0 THEN
      RETURN 0;
    END IF;
    INSERT INTO {schema}.permit
    VALUES (its_lane, its_depth, me, 0, its_most, nextval('{schema}.turn')) RETURNING * INTO mine;
  ELSIF mine.most <> its_most THEN
    UPDATE {schema}.permit SET most = its_most
    WHERE lane = its_lane AND depth = its_depth AND identity = me;
  END IF;
  SELECT coalesce(sum(held), 0) INTO others FROM {schema}.permit
  WHERE lane = its_lane AND depth = its_depth AND identity <> me;
  may := greatest(least({schema}.fair_slots(its_lane, its_depth, me, slots), slots - others), 0);
  keeps := greatest(may, used);
  IF keeps = 0 AND its_most = 0 THEN
    DELETE FROM {schema}.permit WHERE lane = its_lane AND depth = its_depth AND identity = me;
  ELSIF keeps <> mine.held THEN
    UPDATE {schema}.permit
    SET held = keeps, turn = nextval('{schema}.turn')
    WHERE lane = its_lane AND depth = its_depth AND identity = me;
  END IF;
  RETURN may;
END
$$;

CREATE FUNCTION {schema}.settle_cap(me text, wanted jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  its_cap  text             := wanted ->> 'key';
  its_day  text             := wanted ->> 'day';
  tokens   bigint           := (wanted ->> 'used_tokens')::bigint
                             + (wanted ->> 'held_tokens')::bigint;
  usd      double precision := (wanted ->> 'used_usd')::double precision
                             + (wanted ->> 'held_usd')::double precision;
  more_tokens bigint           := (wanted ->> 'more_tokens')::bigint;
  more_usd    double precision := (wanted ->> 'more_usd')::double precision;
  mine     {schema}.cap_share;
  others   {schema}.cap_share;
  next     {schema}.cap_share;
BEGIN
  PERFORM pg_advisory_xact_lock(
    hashtextextended(format('subagents.cap.{schema}.%s.%s', its_day, its_cap), 0));
  IF NOT EXISTS (SELECT FROM {schema}.cap_share WHERE cap = its_cap AND day = its_day) THEN
    -- Before anybody counted.
    INSERT INTO {schema}.cap_share VALUES (
      its_cap, its_day, '', (wanted ->> 'before_tokens')::bigint,
      (wanted ->> 'before_usd')::double precision, (wanted ->> 'before_tokens')::bigint,
      (wanted ->> 'before_usd')::double precision, (wanted ->> 'before_unknown')::integer);
  END IF;
  -- What nodes that are over kept may have begun to be used.
  WITH over AS (
    DELETE FROM {schema}.cap_share
    WHERE cap = its_cap AND day = its_day AND identity <> '' AND NOT {schema}.is_alive(identity)
    RETURNING *
  ), ended AS (
    SELECT count(*) AS number, sum(over.used_tokens) AS used_tokens, sum(over.used_usd) AS used_usd,
           sum(over.kept_tokens) AS kept_tokens, sum(over.kept_usd) AS kept_usd,
           sum(over.cost_unknown) AS cost_unknown FROM over
  )
  UPDATE {schema}.cap_share AS base SET
    used_tokens = base.used_tokens + ended.used_tokens, used_usd = base.used_usd + ended.used_usd,
    kept_tokens = base.kept_tokens + ended.kept_tokens, kept_usd = base.kept_usd + ended.kept_usd,
    cost_unknown = base.cost_unknown + ended.cost_unknown
  FROM ended WHERE ended.number > 0 AND cap = its_cap AND day = its_day AND identity = '';
  SELECT * INTO mine FROM {schema}.cap_share
  WHERE cap = its_cap AND day = its_day AND identity = me;
  SELECT its_cap, its_day, '', coalesce(sum(used_tokens), 0)::bigint, coalesce(sum(used_usd), 0),
         coalesce(sum(kept_tokens), 0)::bigint, coalesce(sum(kept_usd), 0),
         coalesce(sum(cost_unknown), 0)
  INTO others FROM {schema}.cap_share WHERE cap = its_cap AND day = its_day AND identity <> me;
  -- A limit that is null limits nothing: least() leaves it out.
  more_tokens := greatest(
    least(more_tokens, (wanted ->> 'limit_tokens')::bigint - others.kept_tokens - tokens), 0);
  more_usd := greatest(
    least(more_usd, (wanted ->> 'limit_usd')::double precision - others.kept_usd - usd), 0);
  next := (its_cap, its_day, me, (wanted ->> 'used_tokens')::bigint,
           (wanted ->> 'used_usd')::double precision, tokens + more_tokens, usd + more_usd,
           (wanted ->> 'cost_unknown')::integer);
  IF mine IS DISTINCT FROM next THEN
    INSERT INTO {schema}.cap_share SELECT next.*
    ON CONFLICT (cap, day, identity) DO UPDATE SET
      used_tokens = excluded.used_tokens, used_usd = excluded.used_usd,
      kept_tokens = excluded.kept_tokens, kept_usd = excluded.kept_usd,
      cost_unknown = excluded.cost_unknown;
  END IF;
  IF its_day <> '' THEN
    DELETE FROM {schema}.cap_share
    WHERE cap = its_cap AND day <> '' AND day < (its_day::date - 1)::text;
  END IF;
  RETURN jsonb_build_array(
    its_cap, its_day, next.kept_tokens, next.kept_usd, others.used_tokens, others.used_usd,
    others.kept_tokens - others.used_tokens, others.kept_usd - others.used_usd,
    others.cost_unknown);
END
$$;

CREATE FUNCTION {schema}.settle_gates(demand jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  each jsonb;
BEGIN
  FOR each IN SELECT * FROM jsonb_array_elements(demand -> 'closed') AS value
              ORDER BY value ->> 'key' LOOP
    INSERT INTO {schema}.gate AS known (key, provider, until, status, waits, number)
    VALUES (each ->> 'key', each ->> 'provider',
            clock_timestamp() + (each ->> 'left_ms')::bigint * interval '1 millisecond',
            (each ->> 'status')::integer, (each ->> 'waits')::integer, nextval('{schema}.turn'))
    ON CONFLICT (key) DO UPDATE SET
      until = greatest(known.until, excluded.until), waits = greatest(known.waits, excluded.waits),
      status = coalesce(excluded.status, known.status), number = excluded.number;
  END LOOP;
  -- One that closed again since is another one. One that nobody ever went through is forgotten.
  FOR each IN SELECT * FROM jsonb_array_elements(demand -> 'opened') AS value
              ORDER BY value ->> 'key' LOOP
    DELETE FROM {schema}.gate
    WHERE key = each ->> 'key' AND number <= (each ->> 'number')::bigint;
  END LOOP;
  DELETE FROM {schema}.gate WHERE key IN (
    SELECT key FROM {schema}.gate WHERE until < clock_timestamp() - interval '10 minutes'
    ORDER BY key FOR UPDATE SKIP LOCKED);
  RETURN coalesce((
    SELECT jsonb_agg(jsonb_build_array(
      key, provider, (extract(epoch FROM until - clock_timestamp()) * 1000)::bigint, status, waits,
      number)) FROM {schema}.gate), '[]');
END
$$;

CREATE FUNCTION {schema}.settle(me text, its_generation bigint, demand jsonb)
RETURNS jsonb LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  newest   bigint;
  each     record;
  lanes    jsonb := '[]';
  caps     jsonb := '[]';
BEGIN
  IF NOT {schema}.is_alive(me) THEN
    RAISE EXCEPTION 'the node % is over', me USING ERRCODE = 'SUB01';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('subagents.demander.{schema}.' || me, 0));
  SELECT generation INTO newest FROM {schema}.demander WHERE identity = me;
  IF newest > its_generation THEN
    RAISE EXCEPTION 'a newer demand of the node % was answered', me;
  ELSIF newest IS DISTINCT FROM its_generation THEN
    INSERT INTO {schema}.demander VALUES (me, its_generation)
    ON CONFLICT (identity) DO UPDATE SET generation = excluded.generation;
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    -- A permit that a crash of this server forgets is in use all the same.
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  -- Before the sums: what comes after sees these partitions' runs in our slots, or none of both.
  INSERT INTO {schema}.counted AS known (part, identity)
  SELECT part.part, me FROM {schema}.part
  WHERE part.owner = me
    AND part.part IN (SELECT jsonb_array_elements_text(demand -> 'partitions')::integer)
  ORDER BY part.part
  ON CONFLICT (part) DO UPDATE SET identity = me WHERE known.identity <> me;
  FOR each IN
    SELECT value ->> 'lane' AS lane, (value ->> 'depth')::integer AS depth,
           (value ->> 'limit')::integer AS slots, (value ->> 'used')::integer AS used,
           (value ->> 'most')::integer AS most, true AS is_named
    FROM jsonb_array_elements(demand -> 'lanes') AS value
    UNION ALL
    SELECT permit.lane, permit.depth, 0, 0, 0, false FROM {schema}.permit
    WHERE identity = me AND NOT EXISTS (
      SELECT FROM jsonb_array_elements(demand -> 'lanes') AS value
      WHERE value ->> 'lane' = permit.lane AND (value ->> 'depth')::integer = permit.depth)
    ORDER BY lane, depth
  LOOP
    lanes := lanes || jsonb_build_array(jsonb_build_array(each.lane, each.depth,
      {schema}.settle_lane(me, each.lane, each.depth, each.slots, each.used, each.most),
      each.is_named));
  END LOOP;
  FOR each IN
    SELECT value FROM jsonb_array_elements(demand -> 'caps') AS value
    ORDER BY value ->> 'key', value ->> 'day'
  LOOP
    caps := caps || jsonb_build_array({schema}.settle_cap(me, each.value));
  END LOOP;
  -- Of nodes that are over, and whose runs are all counted by others.
  DELETE FROM {schema}.permit WHERE (lane, depth, identity) IN (
    SELECT lane, depth, identity FROM {schema}.permit
    WHERE NOT {schema}.is_alive(identity)
      AND NOT EXISTS (SELECT FROM {schema}.counted WHERE counted.identity = permit.identity)
    FOR UPDATE SKIP LOCKED);
  DELETE FROM {schema}.demander WHERE identity IN (
    SELECT identity FROM {schema}.demander WHERE NOT {schema}.is_alive(identity)
    FOR UPDATE SKIP LOCKED);
  RETURN jsonb_build_object(
    'lanes', lanes, 'caps', caps, 'gates', {schema}.settle_gates(demand));
END
$$;
