CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE sessions (
	session_key BIGINT NOT NULL, 
	owner_key BIGINT NOT NULL, 
	owner TEXT NOT NULL, 
	id TEXT NOT NULL, 
	title TEXT, 
	metadata TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	profile TEXT, 
	encoding TEXT NOT NULL, 
	current_branch INTEGER NOT NULL, 
	next_branch INTEGER NOT NULL, 
	archived INTEGER NOT NULL, 
	sum_reasoning BIGINT NOT NULL, 
	sum_counted BIGINT NOT NULL, 
	sum_unreported BIGINT NOT NULL, 
	crossed TEXT, 
	erased_at BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (session_key)
);
CREATE INDEX ix_sessions_latest ON sessions (owner_key, archived, updated_at, session_key);
CREATE TABLE branches (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	parent INTEGER, 
	first BIGINT NOT NULL, 
	segments TEXT NOT NULL, 
	next_position BIGINT NOT NULL, 
	sum_visible BIGINT NOT NULL, 
	sum_portable BIGINT NOT NULL, 
	sum_portable_calls BIGINT NOT NULL, 
	opaque TEXT, 
	turn_start BIGINT, 
	turn_has_call INTEGER NOT NULL, 
	last_thinking BIGINT, 
	last_sent BIGINT, 
	sum_reported BIGINT NOT NULL, 
	sum_estimated BIGINT NOT NULL, 
	sum_clearable BIGINT NOT NULL, 
	draft TEXT, 
	next_compaction INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_branches PRIMARY KEY (session_key, branch), 
	CONSTRAINT fk_branches_sessions FOREIGN KEY(session_key) REFERENCES sessions (session_key) ON DELETE CASCADE
);
CREATE TABLE origins (
	session_key BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	origin TEXT NOT NULL, 
	CONSTRAINT pk_origins PRIMARY KEY (session_key, number), 
	CONSTRAINT fk_origins_sessions FOREIGN KEY(session_key) REFERENCES sessions (session_key) ON DELETE CASCADE
);
CREATE TABLE messages (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	id TEXT NOT NULL, 
	role TEXT NOT NULL, 
	status TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	origin BIGINT, 
	visible BIGINT NOT NULL, 
	thinking BIGINT NOT NULL, 
	clearable BIGINT NOT NULL, 
	exactness INTEGER NOT NULL, 
	has_call INTEGER NOT NULL, 
	shape TEXT, 
	digest BYTEA NOT NULL, 
	sum_visible BIGINT NOT NULL, 
	sum_portable BIGINT NOT NULL, 
	sum_portable_calls BIGINT NOT NULL, 
	opaque TEXT, 
	turn_start BIGINT, 
	turn_has_call INTEGER NOT NULL, 
	last_thinking BIGINT, 
	last_sent BIGINT, 
	sum_reported BIGINT NOT NULL, 
	sum_estimated BIGINT NOT NULL, 
	sum_clearable BIGINT NOT NULL, 
	idempotency_key TEXT, 
	batch INTEGER, 
	input BIGINT, 
	output BIGINT, 
	reasoning BIGINT, 
	cached BIGINT, 
	erased_at BIGINT, 
	CONSTRAINT pk_messages PRIMARY KEY (session_key, branch, position), 
	CONSTRAINT fk_messages_branches FOREIGN KEY(session_key, branch) REFERENCES branches (session_key, branch) ON DELETE CASCADE, 
	CONSTRAINT fk_messages_origins FOREIGN KEY(session_key, origin) REFERENCES origins (session_key, number)
);
CREATE UNIQUE INDEX uq_messages_session_key_idempotency_key ON messages (session_key, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE bodies (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	text TEXT, 
	data TEXT, 
	sent TEXT, 
	CONSTRAINT pk_bodies PRIMARY KEY (session_key, branch, position), 
	CONSTRAINT fk_bodies_messages FOREIGN KEY(session_key, branch, position) REFERENCES messages (session_key, branch, position) ON DELETE CASCADE
);
CREATE TABLE thinking_blocks (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	tokens BIGINT NOT NULL, 
	source_field TEXT, 
	thought TEXT, 
	data TEXT, 
	CONSTRAINT pk_thinking_blocks PRIMARY KEY (session_key, branch, position, ordinal), 
	CONSTRAINT fk_thinking_blocks_messages FOREIGN KEY(session_key, branch, position) REFERENCES messages (session_key, branch, position) ON DELETE CASCADE
);
CREATE TABLE drafts (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	header TEXT NOT NULL, 
	sent TEXT, 
	idempotency_key TEXT, 
	parts INTEGER NOT NULL, 
	lease_until BIGINT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_drafts PRIMARY KEY (session_key, branch), 
	CONSTRAINT fk_drafts_branches FOREIGN KEY(session_key, branch) REFERENCES branches (session_key, branch) ON DELETE CASCADE
);
CREATE TABLE draft_parts (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	part INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_draft_parts PRIMARY KEY (session_key, branch, part), 
	CONSTRAINT fk_draft_parts_drafts FOREIGN KEY(session_key, branch) REFERENCES drafts (session_key, branch) ON DELETE CASCADE
);
CREATE TABLE compactions (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	first BIGINT NOT NULL, 
	last BIGINT NOT NULL, 
	summary TEXT, 
	tokens BIGINT NOT NULL, 
	exactness INTEGER NOT NULL, 
	effective BIGINT, 
	supersedes TEXT NOT NULL, 
	superseded_by INTEGER, 
	copied_from INTEGER, 
	created_at BIGINT NOT NULL, 
	undone_at BIGINT, 
	CONSTRAINT pk_compactions PRIMARY KEY (session_key, branch, number), 
	CONSTRAINT fk_compactions_branches FOREIGN KEY(session_key, branch) REFERENCES branches (session_key, branch) ON DELETE CASCADE
);
CREATE INDEX ix_compactions_summaries ON compactions (session_key, branch, last, number) WHERE summary IS NOT NULL AND undone_at IS NULL;
CREATE INDEX ix_compactions_clearings ON compactions (session_key, branch, last, number) WHERE summary IS NULL AND undone_at IS NULL;
CREATE TABLE settings_profiles (
	session_key BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_settings_profiles PRIMARY KEY (session_key, name)
);
CREATE FUNCTION append_messages(
    for_key bigint, for_branch int, ends_at bigint, ends_draft text, count bigint, now bigint,
    add_reasoning bigint, add_counted bigint, add_unreported bigint,
    heads json, texts json, thoughts json, kinds json
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old branches;
    last bigint;
    merged text[];
BEGIN
    SELECT * INTO old FROM branches b
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND (ends_at IS NULL OR b.next_position = ends_at + 1)
      AND b.draft IS NOT DISTINCT FROM ends_draft
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last := old.next_position - 1;
    IF kinds IS NOT NULL THEN
        merged := ARRAY(
            SELECT (
                SELECT '{' || string_agg(
                    to_json(s.name)::text || ':[' || s.own || ',' || s.calls || ']', ','
                    ORDER BY s.name COLLATE "C") || '}'
                FROM (
                    SELECT u.key AS name, sum((u.value ->> 0)::bigint) AS own,
                        sum((u.value ->> 1)::bigint) AS calls
                    FROM (
                        SELECT * FROM json_each(coalesce(old.opaque, '{}')::json)
                        UNION ALL SELECT * FROM json_each(k.sums)
                    ) u GROUP BY u.key
                ) s
            ) FROM json_array_elements(kinds) WITH ORDINALITY k(sums, place) ORDER BY k.place
        );
    END IF;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, has_call, shape, digest, sum_visible, sum_portable,
        sum_portable_calls, opaque, turn_start, turn_has_call, last_thinking, last_sent,
        sum_reported, sum_estimated, sum_clearable, idempotency_key, batch, input, output,
        reasoning, cached, erased_at
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.has_call, n.shape, n.digest,
        old.sum_visible + n.sum_visible, old.sum_portable + n.sum_portable,
        old.sum_portable_calls + n.sum_portable_calls,
        CASE WHEN merged IS NULL THEN old.opaque ELSE merged[n.position] END,
        coalesce(last + n.turn_start, old.turn_start),
        CASE WHEN n.turn_start IS NULL THEN greatest(old.turn_has_call, n.turn_has_call)
            ELSE n.turn_has_call END,
        coalesce(last + n.last_thinking, old.last_thinking),
        coalesce(last + n.last_sent, old.last_sent),
        old.sum_reported + n.sum_reported, old.sum_estimated + n.sum_estimated,
        old.sum_clearable + n.sum_clearable,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    UPDATE branches b SET
        next_position = m.position + 1, sum_visible = m.sum_visible,
        sum_portable = m.sum_portable, sum_portable_calls = m.sum_portable_calls,
        opaque = m.opaque, turn_start = m.turn_start, turn_has_call = m.turn_has_call,
        last_thinking = m.last_thinking, last_sent = m.last_sent,
        sum_reported = m.sum_reported, sum_estimated = m.sum_estimated,
        sum_clearable = m.sum_clearable, draft = NULL
    FROM messages m
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND m.session_key = for_key AND m.branch = for_branch AND m.position = last + count;
    UPDATE sessions s SET
        updated_at = greatest(s.updated_at, now),
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $$;
INSERT INTO alembic_version (version_num) VALUES ('0001') RETURNING alembic_version.version_num;
ALTER TABLE messages ADD COLUMN cache_write BIGINT;
ALTER TABLE compactions ADD COLUMN along TEXT;
CREATE OR REPLACE FUNCTION public.append_messages(for_key bigint, for_branch integer, ends_at bigint, ends_draft text, count bigint, now bigint, add_reasoning bigint, add_counted bigint, add_unreported bigint, heads json, texts json, thoughts json, kinds json)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
DECLARE
    old branches;
    last bigint;
    merged text[];
BEGIN
    SELECT * INTO old FROM branches b
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND (ends_at IS NULL OR b.next_position = ends_at + 1)
      AND b.draft IS NOT DISTINCT FROM ends_draft
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last := old.next_position - 1;
    IF kinds IS NOT NULL THEN
        merged := ARRAY(
            SELECT (
                SELECT '{' || string_agg(
                    to_json(s.name)::text || ':[' || s.own || ',' || s.calls || ']', ','
                    ORDER BY s.name COLLATE "C") || '}'
                FROM (
                    SELECT u.key AS name, sum((u.value ->> 0)::bigint) AS own,
                        sum((u.value ->> 1)::bigint) AS calls
                    FROM (
                        SELECT * FROM json_each(coalesce(old.opaque, '{}')::json)
                        UNION ALL SELECT * FROM json_each(k.sums)
                    ) u GROUP BY u.key
                ) s
            ) FROM json_array_elements(kinds) WITH ORDINALITY k(sums, place) ORDER BY k.place
        );
    END IF;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, has_call, shape, digest, sum_visible, sum_portable,
        sum_portable_calls, opaque, turn_start, turn_has_call, last_thinking, last_sent,
        sum_reported, sum_estimated, sum_clearable, idempotency_key, batch, input, output,
        reasoning, cached, erased_at, cache_write
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.has_call, n.shape, n.digest,
        old.sum_visible + n.sum_visible, old.sum_portable + n.sum_portable,
        old.sum_portable_calls + n.sum_portable_calls,
        CASE WHEN merged IS NULL THEN old.opaque ELSE merged[n.position] END,
        coalesce(last + n.turn_start, old.turn_start),
        CASE WHEN n.turn_start IS NULL THEN greatest(old.turn_has_call, n.turn_has_call)
            ELSE n.turn_has_call END,
        coalesce(last + n.last_thinking, old.last_thinking),
        coalesce(last + n.last_sent, old.last_sent),
        old.sum_reported + n.sum_reported, old.sum_estimated + n.sum_estimated,
        old.sum_clearable + n.sum_clearable,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at, n.cache_write
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    UPDATE branches b SET
        next_position = m.position + 1, sum_visible = m.sum_visible,
        sum_portable = m.sum_portable, sum_portable_calls = m.sum_portable_calls,
        opaque = m.opaque, turn_start = m.turn_start, turn_has_call = m.turn_has_call,
        last_thinking = m.last_thinking, last_sent = m.last_sent,
        sum_reported = m.sum_reported, sum_estimated = m.sum_estimated,
        sum_clearable = m.sum_clearable, draft = NULL
    FROM messages m
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND m.session_key = for_key AND m.branch = for_branch AND m.position = last + count;
    UPDATE sessions s SET
        updated_at = CASE WHEN for_branch = 1 AND last = 0 THEN now ELSE greatest(s.updated_at, now) END,
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $function$;
UPDATE alembic_version SET version_num='0002' WHERE alembic_version.version_num = '0001';
DROP INDEX ix_compactions_summaries;
DROP INDEX ix_compactions_clearings;
ALTER TABLE compactions ADD COLUMN kind TEXT;
ALTER TABLE compactions ALTER COLUMN kind SET NOT NULL;
CREATE OR REPLACE FUNCTION public.append_messages(for_key bigint, for_branch integer, ends_at bigint, ends_draft text, count bigint, now bigint, add_reasoning bigint, add_counted bigint, add_unreported bigint, heads json, texts json, thoughts json, kinds json)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
DECLARE
    old branches;
    last bigint;
    merged text[];
BEGIN
    SELECT * INTO old FROM branches b
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND (ends_at IS NULL OR b.next_position = ends_at + 1)
      AND b.draft IS NOT DISTINCT FROM ends_draft
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last := old.next_position - 1;
    IF kinds IS NOT NULL THEN
        merged := ARRAY(
            SELECT (
                SELECT '{' || string_agg(
                    to_json(s.name)::text || ':[' || s.own || ',' || s.calls || ']', ','
                    ORDER BY s.name COLLATE "C") || '}'
                FROM (
                    SELECT u.key AS name, sum((u.value ->> 0)::bigint) AS own,
                        sum((u.value ->> 1)::bigint) AS calls
                    FROM (
                        SELECT * FROM json_each(coalesce(old.opaque, '{}')::json)
                        UNION ALL SELECT * FROM json_each(k.sums)
                    ) u GROUP BY u.key
                ) s
            ) FROM json_array_elements(kinds) WITH ORDINALITY k(sums, place) ORDER BY k.place
        );
    END IF;
    INSERT INTO origins (session_key, number, origin)
        SELECT DISTINCT for_key, (h.value ->> 'origin')::bigint, h.value ->> 'made_by'
        FROM json_array_elements(heads) h WHERE h.value ->> 'made_by' IS NOT NULL
        ON CONFLICT DO NOTHING;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, has_call, shape, digest, sum_visible, sum_portable,
        sum_portable_calls, opaque, turn_start, turn_has_call, last_thinking, last_sent,
        sum_reported, sum_estimated, sum_clearable, idempotency_key, batch, input, output,
        reasoning, cached, erased_at, cache_write
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.has_call, n.shape, n.digest,
        old.sum_visible + n.sum_visible, old.sum_portable + n.sum_portable,
        old.sum_portable_calls + n.sum_portable_calls,
        CASE WHEN merged IS NULL THEN old.opaque ELSE merged[n.position] END,
        coalesce(last + n.turn_start, old.turn_start),
        CASE WHEN n.turn_start IS NULL THEN greatest(old.turn_has_call, n.turn_has_call)
            ELSE n.turn_has_call END,
        coalesce(last + n.last_thinking, old.last_thinking),
        coalesce(last + n.last_sent, old.last_sent),
        old.sum_reported + n.sum_reported, old.sum_estimated + n.sum_estimated,
        old.sum_clearable + n.sum_clearable,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at, n.cache_write
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    UPDATE branches b SET
        next_position = m.position + 1, sum_visible = m.sum_visible,
        sum_portable = m.sum_portable, sum_portable_calls = m.sum_portable_calls,
        opaque = m.opaque, turn_start = m.turn_start, turn_has_call = m.turn_has_call,
        last_thinking = m.last_thinking, last_sent = m.last_sent,
        sum_reported = m.sum_reported, sum_estimated = m.sum_estimated,
        sum_clearable = m.sum_clearable, draft = NULL
    FROM messages m
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND m.session_key = for_key AND m.branch = for_branch AND m.position = last + count;
    UPDATE sessions s SET
        updated_at = CASE WHEN for_branch = 1 AND last = 0 THEN now ELSE greatest(s.updated_at, now) END,
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $function$;
CREATE INDEX ix_compactions_summaries ON compactions (session_key, branch, last, number) WHERE kind = 'summary' AND undone_at IS NULL;
CREATE INDEX ix_compactions_clearings ON compactions (session_key, branch, last, number) WHERE kind = 'clearing' AND undone_at IS NULL;
UPDATE alembic_version SET version_num='0003' WHERE alembic_version.version_num = '0002';
ALTER TABLE messages ADD COLUMN echo BIGINT;
CREATE INDEX ix_messages_echo ON messages (echo);
CREATE OR REPLACE FUNCTION public.append_messages(for_key bigint, for_branch integer, ends_at bigint, ends_draft text, count bigint, now bigint, add_reasoning bigint, add_counted bigint, add_unreported bigint, heads json, texts json, thoughts json, kinds json)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
DECLARE
    old branches;
    last bigint;
    merged text[];
BEGIN
    SELECT * INTO old FROM branches b
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND (ends_at IS NULL OR b.next_position = ends_at + 1)
      AND b.draft IS NOT DISTINCT FROM ends_draft
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last := old.next_position - 1;
    IF kinds IS NOT NULL THEN
        merged := ARRAY(
            SELECT (
                SELECT '{' || string_agg(
                    to_json(s.name)::text || ':[' || s.own || ',' || s.calls || ']', ','
                    ORDER BY s.name COLLATE "C") || '}'
                FROM (
                    SELECT u.key AS name, sum((u.value ->> 0)::bigint) AS own,
                        sum((u.value ->> 1)::bigint) AS calls
                    FROM (
                        SELECT * FROM json_each(coalesce(old.opaque, '{}')::json)
                        UNION ALL SELECT * FROM json_each(k.sums)
                    ) u GROUP BY u.key
                ) s
            ) FROM json_array_elements(kinds) WITH ORDINALITY k(sums, place) ORDER BY k.place
        );
    END IF;
    INSERT INTO origins (session_key, number, origin)
        SELECT DISTINCT for_key, (h.value ->> 'origin')::bigint, h.value ->> 'made_by'
        FROM json_array_elements(heads) h WHERE h.value ->> 'made_by' IS NOT NULL
        ON CONFLICT DO NOTHING;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, has_call, shape, digest, sum_visible, sum_portable,
        sum_portable_calls, opaque, turn_start, turn_has_call, last_thinking, last_sent,
        sum_reported, sum_estimated, sum_clearable, idempotency_key, batch, input, output,
        reasoning, cached, erased_at, cache_write, echo
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.has_call, n.shape, n.digest,
        old.sum_visible + n.sum_visible, old.sum_portable + n.sum_portable,
        old.sum_portable_calls + n.sum_portable_calls,
        CASE WHEN merged IS NULL THEN old.opaque ELSE merged[n.position] END,
        coalesce(last + n.turn_start, old.turn_start),
        CASE WHEN n.turn_start IS NULL THEN greatest(old.turn_has_call, n.turn_has_call)
            ELSE n.turn_has_call END,
        coalesce(last + n.last_thinking, old.last_thinking),
        coalesce(last + n.last_sent, old.last_sent),
        old.sum_reported + n.sum_reported, old.sum_estimated + n.sum_estimated,
        old.sum_clearable + n.sum_clearable,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at, n.cache_write, n.echo
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    UPDATE branches b SET
        next_position = m.position + 1, sum_visible = m.sum_visible,
        sum_portable = m.sum_portable, sum_portable_calls = m.sum_portable_calls,
        opaque = m.opaque, turn_start = m.turn_start, turn_has_call = m.turn_has_call,
        last_thinking = m.last_thinking, last_sent = m.last_sent,
        sum_reported = m.sum_reported, sum_estimated = m.sum_estimated,
        sum_clearable = m.sum_clearable, draft = NULL
    FROM messages m
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND m.session_key = for_key AND m.branch = for_branch AND m.position = last + count;
    UPDATE sessions s SET
        updated_at = CASE WHEN for_branch = 1 AND last = 0 THEN now ELSE greatest(s.updated_at, now) END,
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $function$;
UPDATE alembic_version SET version_num='0004' WHERE alembic_version.version_num = '0003';
ALTER TABLE thinking_blocks ADD COLUMN is_hidden INTEGER DEFAULT 0 NOT NULL;
CREATE OR REPLACE FUNCTION public.append_messages(for_key bigint, for_branch integer, ends_at bigint, ends_draft text, count bigint, now bigint, add_reasoning bigint, add_counted bigint, add_unreported bigint, heads json, texts json, thoughts json, kinds json)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
DECLARE
    old branches;
    last bigint;
    merged text[];
BEGIN
    SELECT * INTO old FROM branches b
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND (ends_at IS NULL OR b.next_position = ends_at + 1)
      AND b.draft IS NOT DISTINCT FROM ends_draft
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last := old.next_position - 1;
    IF kinds IS NOT NULL THEN
        merged := ARRAY(
            SELECT (
                SELECT '{' || string_agg(
                    to_json(s.name)::text || ':[' || s.own || ',' || s.calls || ']', ','
                    ORDER BY s.name COLLATE "C") || '}'
                FROM (
                    SELECT u.key AS name, sum((u.value ->> 0)::bigint) AS own,
                        sum((u.value ->> 1)::bigint) AS calls
                    FROM (
                        SELECT * FROM json_each(coalesce(old.opaque, '{}')::json)
                        UNION ALL SELECT * FROM json_each(k.sums)
                    ) u GROUP BY u.key
                ) s
            ) FROM json_array_elements(kinds) WITH ORDINALITY k(sums, place) ORDER BY k.place
        );
    END IF;
    INSERT INTO origins (session_key, number, origin)
        SELECT DISTINCT for_key, (h.value ->> 'origin')::bigint, h.value ->> 'made_by'
        FROM json_array_elements(heads) h WHERE h.value ->> 'made_by' IS NOT NULL
        ON CONFLICT DO NOTHING;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, has_call, shape, digest, sum_visible, sum_portable,
        sum_portable_calls, opaque, turn_start, turn_has_call, last_thinking, last_sent,
        sum_reported, sum_estimated, sum_clearable, idempotency_key, batch, input, output,
        reasoning, cached, erased_at, cache_write, echo
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.has_call, n.shape, n.digest,
        old.sum_visible + n.sum_visible, old.sum_portable + n.sum_portable,
        old.sum_portable_calls + n.sum_portable_calls,
        CASE WHEN merged IS NULL THEN old.opaque ELSE merged[n.position] END,
        coalesce(last + n.turn_start, old.turn_start),
        CASE WHEN n.turn_start IS NULL THEN greatest(old.turn_has_call, n.turn_has_call)
            ELSE n.turn_has_call END,
        coalesce(last + n.last_thinking, old.last_thinking),
        coalesce(last + n.last_sent, old.last_sent),
        old.sum_reported + n.sum_reported, old.sum_estimated + n.sum_estimated,
        old.sum_clearable + n.sum_clearable,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at, n.cache_write, n.echo
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data, is_hidden
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data, n.is_hidden
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    UPDATE branches b SET
        next_position = m.position + 1, sum_visible = m.sum_visible,
        sum_portable = m.sum_portable, sum_portable_calls = m.sum_portable_calls,
        opaque = m.opaque, turn_start = m.turn_start, turn_has_call = m.turn_has_call,
        last_thinking = m.last_thinking, last_sent = m.last_sent,
        sum_reported = m.sum_reported, sum_estimated = m.sum_estimated,
        sum_clearable = m.sum_clearable, draft = NULL
    FROM messages m
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND m.session_key = for_key AND m.branch = for_branch AND m.position = last + count;
    UPDATE sessions s SET
        updated_at = CASE WHEN for_branch = 1 AND last = 0 THEN now ELSE greatest(s.updated_at, now) END,
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $function$;
CREATE VIEW conversation AS
    SELECT
        s.owner AS owner, s.id AS session, s.title AS title, m.position AS position,
        m.role AS role, to_char(to_timestamp(m.created_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS time, regexp_replace(o.origin, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json ->> 'model' AS model,
        (
            SELECT string_agg(thought, E'\n\n' ORDER BY ordinal) FROM (
                SELECT t.ordinal, coalesce(t.thought, regexp_replace(t.data, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json ->> 'thought') AS thought FROM thinking_blocks t
                WHERE t.session_key = m.session_key AND t.branch = m.branch
                  AND t.position = m.position
                ORDER BY t.ordinal
            ) thoughts
        ) AS thinking,
        (
            SELECT max(t.is_hidden) FROM thinking_blocks t
            WHERE t.session_key = m.session_key AND t.branch = m.branch
              AND t.position = m.position
        ) AS is_hidden,
        CASE WHEN regexp_replace(w.data, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json -> 'blocks' IS NULL THEN w.text ELSE (
            SELECT string_agg(
                CASE WHEN json_typeof(e.value) = 'null' THEN w.text ELSE e.value ->> 'text' END,
                '' ORDER BY e.number
            )
            FROM json_array_elements(regexp_replace(w.data, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json -> 'blocks') WITH ORDINALITY AS e (value, number)
            WHERE json_typeof(e.value) = 'null' OR e.value ->> 'type' = 'text'
        ) END AS text
    FROM sessions s
    JOIN (
        SELECT b.session_key, b.branch, b.branch AS of_branch, b.first AS first,
            b.next_position - 1 AS last
        FROM branches b
        UNION ALL
        SELECT b.session_key, b.branch, (e.value ->> 0)::integer, (e.value ->> 1)::bigint, (e.value ->> 2)::bigint
        FROM branches b, json_array_elements(b.segments::json) e
    ) part ON part.session_key = s.session_key AND part.branch = s.current_branch
    JOIN messages m ON m.session_key = s.session_key AND m.branch = part.of_branch
        AND m.position BETWEEN part.first AND part.last
    LEFT JOIN bodies w ON w.session_key = m.session_key AND w.branch = m.branch
        AND w.position = m.position
    LEFT JOIN origins o ON o.session_key = m.session_key AND o.number = m.origin;
UPDATE alembic_version SET version_num='0005' WHERE alembic_version.version_num = '0004';
ALTER TABLE messages ADD COLUMN annotations TEXT;
CREATE OR REPLACE FUNCTION public.append_messages(for_key bigint, for_branch integer, ends_at bigint, ends_draft text, count bigint, now bigint, add_reasoning bigint, add_counted bigint, add_unreported bigint, heads json, texts json, thoughts json, kinds json)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
DECLARE
    old branches;
    last bigint;
    merged text[];
BEGIN
    SELECT * INTO old FROM branches b
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND (ends_at IS NULL OR b.next_position = ends_at + 1)
      AND b.draft IS NOT DISTINCT FROM ends_draft
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last := old.next_position - 1;
    IF kinds IS NOT NULL THEN
        merged := ARRAY(
            SELECT (
                SELECT '{' || string_agg(
                    to_json(s.name)::text || ':[' || s.own || ',' || s.calls || ']', ','
                    ORDER BY s.name COLLATE "C") || '}'
                FROM (
                    SELECT u.key AS name, sum((u.value ->> 0)::bigint) AS own,
                        sum((u.value ->> 1)::bigint) AS calls
                    FROM (
                        SELECT * FROM json_each(coalesce(old.opaque, '{}')::json)
                        UNION ALL SELECT * FROM json_each(k.sums)
                    ) u GROUP BY u.key
                ) s
            ) FROM json_array_elements(kinds) WITH ORDINALITY k(sums, place) ORDER BY k.place
        );
    END IF;
    INSERT INTO origins (session_key, number, origin)
        SELECT DISTINCT for_key, (h.value ->> 'origin')::bigint, h.value ->> 'made_by'
        FROM json_array_elements(heads) h WHERE h.value ->> 'made_by' IS NOT NULL
        ON CONFLICT DO NOTHING;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, has_call, shape, digest, sum_visible, sum_portable,
        sum_portable_calls, opaque, turn_start, turn_has_call, last_thinking, last_sent,
        sum_reported, sum_estimated, sum_clearable, idempotency_key, batch, input, output,
        reasoning, cached, erased_at, cache_write, echo, annotations
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.has_call, n.shape, n.digest,
        old.sum_visible + n.sum_visible, old.sum_portable + n.sum_portable,
        old.sum_portable_calls + n.sum_portable_calls,
        CASE WHEN merged IS NULL THEN old.opaque ELSE merged[n.position] END,
        coalesce(last + n.turn_start, old.turn_start),
        CASE WHEN n.turn_start IS NULL THEN greatest(old.turn_has_call, n.turn_has_call)
            ELSE n.turn_has_call END,
        coalesce(last + n.last_thinking, old.last_thinking),
        coalesce(last + n.last_sent, old.last_sent),
        old.sum_reported + n.sum_reported, old.sum_estimated + n.sum_estimated,
        old.sum_clearable + n.sum_clearable,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at, n.cache_write, n.echo, n.annotations
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data, is_hidden
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data, n.is_hidden
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    UPDATE branches b SET
        next_position = m.position + 1, sum_visible = m.sum_visible,
        sum_portable = m.sum_portable, sum_portable_calls = m.sum_portable_calls,
        opaque = m.opaque, turn_start = m.turn_start, turn_has_call = m.turn_has_call,
        last_thinking = m.last_thinking, last_sent = m.last_sent,
        sum_reported = m.sum_reported, sum_estimated = m.sum_estimated,
        sum_clearable = m.sum_clearable, draft = NULL
    FROM messages m
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND m.session_key = for_key AND m.branch = for_branch AND m.position = last + count;
    UPDATE sessions s SET
        updated_at = CASE WHEN for_branch = 1 AND last = 0 THEN now ELSE greatest(s.updated_at, now) END,
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $function$;
CREATE INDEX ix_messages_id ON messages (session_key, id);
UPDATE alembic_version SET version_num='0006' WHERE alembic_version.version_num = '0005';
ALTER TABLE drafts ADD COLUMN stop TEXT;
ALTER TABLE drafts ADD COLUMN followed_until BIGINT;
UPDATE alembic_version SET version_num='0007' WHERE alembic_version.version_num = '0006';
CREATE TABLE search_entries (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	kind INTEGER NOT NULL, 
	number BIGINT NOT NULL, 
	words TSVECTOR NOT NULL, 
	CONSTRAINT pk_search_entries PRIMARY KEY (session_key, branch, position, kind), 
	CONSTRAINT fk_search_entries_sessions FOREIGN KEY(session_key) REFERENCES sessions (session_key) ON DELETE CASCADE
);
CREATE INDEX ix_search_entries_number ON search_entries (number);
CREATE TABLE search_progress (
	session_key BIGINT NOT NULL, 
	branch INTEGER NOT NULL, 
	next_position BIGINT NOT NULL, 
	title TEXT, 
	CONSTRAINT pk_search_progress PRIMARY KEY (session_key, branch), 
	CONSTRAINT fk_search_progress_sessions FOREIGN KEY(session_key) REFERENCES sessions (session_key) ON DELETE CASCADE
);
CREATE INDEX ix_search_entries_words ON search_entries USING gin (words);
UPDATE alembic_version SET version_num='0008' WHERE alembic_version.version_num = '0007';
DROP INDEX ix_messages_id;
CREATE INDEX ix_messages_id ON messages (id, session_key);
UPDATE alembic_version SET version_num='0009' WHERE alembic_version.version_num = '0008';
INSERT INTO sessions VALUES (3025142988006763404, 3869013068838237547, 'owner', 'first', 'A ''title'' \ é', '{"k":[1,"\u0000"]}', '{"reasoning.effort":"high","reasoning.stripFromContext":"all"}', 'careful', 'o200k_base', 2, 3, 0, 16, 12, 4, '["warn"]', NULL, 1767312000000000, 1767312011000000);
INSERT INTO sessions VALUES (6908983973454234331, 5200221206380184940, '', 'old chat', NULL, '{}', '{}', NULL, 'cl100k_base', 1, 2, 1, 0, 0, 0, NULL, NULL, 1767312022000000, 1767312022000000);
INSERT INTO sessions VALUES (8114676596474200780, 3869013068838237547, 'owner', 'second', NULL, '{}', '{}', NULL, 'o200k_base', 1, 2, 0, 8, 6, 2, NULL, 1767312021000000, 1767312018000000, 1767312019000000);
INSERT INTO settings_profiles VALUES (3869013068838237547, 'careful', 'owner', '{"reasoning.enabled":true}', 1767312001000000);
INSERT INTO branches VALUES (3025142988006763404, 1, NULL, 1, '[]', 16, 82, 12, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 15, 0, 14, 10, 0, 0, 4, NULL, 6, 1767312000000000);
INSERT INTO branches VALUES (3025142988006763404, 2, 1, 13, '[[1,1,12]]', 14, 76, 8, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 13, 0, 12, 10, 0, 0, 4, 'id-0017', 6, 1767312010000000);
INSERT INTO branches VALUES (6908983973454234331, 1, NULL, 1, '[]', 1, 0, 0, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 0, NULL, 1, 1767312022000000);
INSERT INTO branches VALUES (8114676596474200780, 1, NULL, 1, '[]', 8, 30, 4, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 6, 0, 7, 3, 0, 0, 2, NULL, 1, 1767312018000000);
INSERT INTO origins VALUES (3025142988006763404, 131884830214180, '{"provider":"anthropic","api":"anthropic.messages","model":"m-1"}');
INSERT INTO origins VALUES (3025142988006763404, 274519887476489, '{"provider":"deepseek","api":"openai.chat","model":"m-2","baseUrl":"https://x.test"}');
INSERT INTO origins VALUES (8114676596474200780, 131884830214180, '{"provider":"anthropic","api":"anthropic.messages","model":"m-1"}');
INSERT INTO origins VALUES (8114676596474200780, 274519887476489, '{"provider":"deepseek","api":"openai.chat","model":"m-2","baseUrl":"https://x.test"}');
INSERT INTO search_entries VALUES (3025142988006763404, 0, 0, 0, 452431872000000000, '''_k0'' ''_o35b17ee31f72756b'' ''a'' ''e'' ''title''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 2, 1, 452431872512000000, '''91'' ''_k1'' ''_o35b17ee31f72756b'' ''e'' ''is'' ''prime''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 3, 1, 452431872512000000, '''_k1'' ''_o35b17ee31f72756b'' ''no''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 3, 2, 452431872512000000, '''13'' ''7'' ''91'' ''_k2'' ''_o35b17ee31f72756b'' ''is''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 5, 1, 452431872512000000, '''_k1'' ''_o35b17ee31f72756b'' ''is'' ''it'' ''not''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 7, 2, 452431872512000000, '''_k2'' ''_o35b17ee31f72756b'' ''only'' ''this''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 8, 1, 452431872768000000, '''91'' ''_k1'' ''_o35b17ee31f72756b'' ''is'' ''prime''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 9, 1, 452431872768000000, '''91'' ''_k1'' ''_o35b17ee31f72756b'' ''e'' ''is'' ''prime''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 10, 1, 452431872768000000, '''_k1'' ''_o35b17ee31f72756b'' ''no''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 10, 2, 452431872768000000, '''13'' ''7'' ''91'' ''_k2'' ''_o35b17ee31f72756b'' ''is''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 12, 1, 452431872768000000, '''_k1'' ''_o35b17ee31f72756b'' ''is'' ''it'' ''not''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 14, 2, 452431872768000000, '''_k2'' ''_o35b17ee31f72756b'' ''only'' ''this''');
INSERT INTO search_entries VALUES (3025142988006763404, 1, 15, 1, 452431872768000000, '''_k1'' ''_o35b17ee31f72756b'' ''again''');
INSERT INTO search_entries VALUES (3025142988006763404, 2, 13, 1, 452431874816000000, '''_k1'' ''_o35b17ee31f72756b'' ''otherwise''');
INSERT INTO search_progress VALUES (3025142988006763404, 0, 1, 'A ''title'' \ é');
INSERT INTO search_progress VALUES (3025142988006763404, 1, 16, NULL);
INSERT INTO search_progress VALUES (3025142988006763404, 2, 14, NULL);
INSERT INTO compactions VALUES (3025142988006763404, 1, 1, 2, 5, '{"role":"user","blocks":[{"type":"text","text":"What came before."}]}', 6, 0, NULL, '[]', 2, NULL, 1767312004000000, NULL, NULL, 'summary');
INSERT INTO compactions VALUES (3025142988006763404, 1, 2, 2, 7, '{"role":"user","blocks":[{"type":"text","text":"All of it."}]}', 3, 0, NULL, '[1]', NULL, NULL, 1767312005000000, NULL, NULL, 'summary');
INSERT INTO compactions VALUES (3025142988006763404, 1, 3, 9, 14, '{"role":"user","blocks":[{"type":"text","text":"More."}]}', 2, 0, NULL, '[]', NULL, NULL, 1767312006000000, 1767312007000000, NULL, 'summary');
INSERT INTO compactions VALUES (3025142988006763404, 1, 4, 1, 5, NULL, 0, 0, NULL, '[]', 5, NULL, 1767312008000000, NULL, NULL, 'clearing');
INSERT INTO compactions VALUES (3025142988006763404, 1, 5, 1, 11, NULL, 0, 0, 40, '[4]', NULL, NULL, 1767312009000000, NULL, '{"settings":{"reasoning.stripFromContext":[null,"all"]}}', 'clearing');
INSERT INTO compactions VALUES (3025142988006763404, 2, 1, 2, 5, '{"role":"user","blocks":[{"type":"text","text":"What came before."}]}', 6, 0, NULL, '[]', 2, 1, 1767312004000000, NULL, NULL, 'summary');
INSERT INTO compactions VALUES (3025142988006763404, 2, 2, 2, 7, '{"role":"user","blocks":[{"type":"text","text":"All of it."}]}', 3, 0, NULL, '[1]', NULL, 1, 1767312005000000, NULL, NULL, 'summary');
INSERT INTO compactions VALUES (3025142988006763404, 2, 4, 1, 5, NULL, 0, 0, NULL, '[]', 5, 1, 1767312008000000, NULL, NULL, 'clearing');
INSERT INTO compactions VALUES (3025142988006763404, 2, 5, 1, 11, NULL, 0, 0, 40, '[4]', NULL, 1, 1767312009000000, NULL, '{"settings":{"reasoning.stripFromContext":[null,"all"]}}', 'clearing');
INSERT INTO drafts VALUES (3025142988006763404, 2, 'id-0017', '{"origin":{"model":"m"}}', '{"a":1}', '1c8be5bbd57bab0083b962a5ea2bf6c7', 2, 1767312044000000, 1767312012000000, 'user', 1767312046000000);
INSERT INTO messages VALUES (3025142988006763404, 1, 1, 'id-0001', 'system', 'complete', 1767312002000000, NULL, 5, 0, 0, 0, 0, NULL, '\xba84611c6f7afda3cfca4546cd7af801', 5, 0, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 0, 'd6c94c9de06912098bcdbbeba5dc97dc', 7, NULL, NULL, NULL, NULL, NULL, NULL, 1296711837666723738, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 2, 'id-0002', 'user', 'complete', 1767312002000000, NULL, 5, 0, 0, 0, 0, NULL, '\x8a0a9ef000bc9acaabf170e67af2f930', 10, 0, 0, NULL, 2, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 924685927559782524, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 3, 'id-0003', 'assistant', 'complete', 1767312002000000, 131884830214180, 5, 10, 0, 0, 1, '[[0,7,33,"thinking"],[1,3,6,null]]', '\x19b69354c7f658bc1ba32bcc182658a9', 15, 0, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 2, 1, 3, 3, 0, 0, 0, NULL, NULL, 10, 20, 8, 1, NULL, 2, 6822726365056491325, '{"rating":1,"why":["\u0000",null]}');
INSERT INTO messages VALUES (3025142988006763404, 1, 4, 'id-0004', 'tool', 'complete', 1767312002000000, NULL, 5, 0, 2, 0, 0, NULL, '\xdbb9968c52771e40c6e90a8f043fdf3c', 20, 0, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 2, 1, 3, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2544737301731954538, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 5, 'id-0005', 'assistant', 'interrupted', 1767312002000000, 274519887476489, 5, 2, 0, 0, 0, '[[0,2,48,"reasoning_content"]]', '\xbb8072709acd9f1df1ce03001b89ba2b', 25, 2, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 2, 1, 5, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4848710142942212337, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 6, 'id-0006', 'user', 'complete', 1767312002000000, NULL, 5, 0, 0, 0, 0, NULL, '\x8165dc076a9b05fafa49991294b1f516', 30, 2, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 6, 0, 5, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8732201784922612809, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 7, 'id-0007', 'assistant', 'complete', 1767312002000000, 274519887476489, 5, 4, 0, 0, 0, '[[0,4,32,null]]', '\xf6c91ec662d0abe71172c4012f7c8bd3', 35, 6, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 6, 0, 7, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 9017854526782945183, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 8, 'id-0008', 'user', 'complete', 1767312003000000, NULL, 12, 0, 0, 0, 0, NULL, '\x4ab373f5f36dd6875d4c12ff82202fab', 47, 6, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 8, 0, 7, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3944785302423194965, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 9, 'id-0009', 'user', 'complete', 1767312003000000, NULL, 5, 0, 0, 0, 0, NULL, '\x8a0a9ef000bc9acaabf170e67af2f930', 52, 6, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 9, 0, 7, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 924685927559782524, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 10, 'id-0010', 'assistant', 'complete', 1767312003000000, 131884830214180, 5, 10, 0, 0, 1, '[[0,7,33,"thinking"],[1,3,6,null]]', '\x19b69354c7f658bc1ba32bcc182658a9', 57, 6, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 9, 1, 10, 10, 0, 0, 2, NULL, NULL, 10, 20, 8, 1, NULL, 2, 6822726365056491325, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 11, 'id-0011', 'tool', 'complete', 1767312003000000, NULL, 5, 0, 2, 0, 0, NULL, '\xdbb9968c52771e40c6e90a8f043fdf3c', 62, 6, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 9, 1, 10, 10, 0, 0, 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2544737301731954538, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 12, 'id-0012', 'assistant', 'interrupted', 1767312003000000, 274519887476489, 5, 2, 0, 0, 0, '[[0,2,48,"reasoning_content"]]', '\xbb8072709acd9f1df1ce03001b89ba2b', 67, 8, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 9, 1, 12, 10, 0, 0, 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4848710142942212337, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 13, 'id-0013', 'user', 'complete', 1767312003000000, NULL, 5, 0, 0, 0, 0, NULL, '\x8165dc076a9b05fafa49991294b1f516', 72, 8, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 13, 0, 12, 10, 0, 0, 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8732201784922612809, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 14, 'id-0014', 'assistant', 'complete', 1767312003000000, 274519887476489, 5, 4, 0, 0, 0, '[[0,4,32,null]]', '\xf6c91ec662d0abe71172c4012f7c8bd3', 77, 12, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 13, 0, 14, 10, 0, 0, 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 9017854526782945183, NULL);
INSERT INTO messages VALUES (3025142988006763404, 1, 15, 'id-0015', 'user', 'complete', 1767312003000000, NULL, 5, 0, 0, 0, 0, NULL, '\x8ec094d5dd320115535690e8af67fcfb', 82, 12, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 15, 0, 14, 10, 0, 0, 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2270416262142752029, NULL);
INSERT INTO messages VALUES (3025142988006763404, 2, 13, 'id-0016', 'user', 'complete', 1767312011000000, NULL, 9, 0, 0, 0, 0, NULL, '\x9e4e77ff2e0c81a54c4381cbb73282e8', 76, 8, 0, '{"131884830214180:":[6,6],"131884830214180:thinking":[14,14]}', 13, 0, 12, 10, 0, 0, 4, '4ece80bac5081ce8a90d68e2ba1ede73', 1, NULL, NULL, NULL, NULL, NULL, NULL, 9071087483292670744, NULL);
INSERT INTO messages VALUES (8114676596474200780, 1, 1, 'id-0018', 'system', 'complete', 1767312019000000, NULL, 5, 0, 0, 0, 0, NULL, '\xba84611c6f7afda3cfca4546cd7af801', 5, 0, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1296711837666723738, NULL);
INSERT INTO messages VALUES (8114676596474200780, 1, 2, 'id-0019', 'user', 'erased', 1767312019000000, NULL, 0, 0, 0, 0, 0, NULL, '\xb32f4d644ad770058055f44ca57592f9', 5, 0, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1767312020000000, NULL, NULL, NULL);
INSERT INTO messages VALUES (8114676596474200780, 1, 3, 'id-0020', 'assistant', 'complete', 1767312019000000, 131884830214180, 5, 10, 0, 0, 1, '[[0,7,33,"thinking"],[1,3,6,null]]', '\x19b69354c7f658bc1ba32bcc182658a9', 10, 0, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', NULL, 1, 3, 3, 0, 0, 0, NULL, NULL, 10, 20, 8, 1, NULL, 2, 6822726365056491325, NULL);
INSERT INTO messages VALUES (8114676596474200780, 1, 4, 'id-0021', 'tool', 'complete', 1767312019000000, NULL, 5, 0, 2, 0, 0, NULL, '\xdbb9968c52771e40c6e90a8f043fdf3c', 15, 0, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', NULL, 1, 3, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2544737301731954538, NULL);
INSERT INTO messages VALUES (8114676596474200780, 1, 5, 'id-0022', 'assistant', 'interrupted', 1767312019000000, 274519887476489, 5, 0, 0, 0, 0, NULL, '\x04d1fed8e08aab0ca83d9375c27ab479', 20, 0, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', NULL, 1, 3, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, 1767312021000000, NULL, 4848710142942212337, NULL);
INSERT INTO messages VALUES (8114676596474200780, 1, 6, 'id-0023', 'user', 'complete', 1767312019000000, NULL, 5, 0, 0, 0, 0, NULL, '\x8165dc076a9b05fafa49991294b1f516', 25, 0, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 6, 0, 3, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8732201784922612809, NULL);
INSERT INTO messages VALUES (8114676596474200780, 1, 7, 'id-0024', 'assistant', 'complete', 1767312019000000, 274519887476489, 5, 4, 0, 0, 0, '[[0,4,32,null]]', '\xf6c91ec662d0abe71172c4012f7c8bd3', 30, 4, 0, '{"131884830214180:":[3,3],"131884830214180:thinking":[7,7]}', 6, 0, 7, 3, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 9017854526782945183, NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 1, 'Be brief.', NULL, NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 2, 'Is 91 prime? é 😀', '{"metadata":{"from":"test\u0000"}}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 3, 'No.', '{"blocks":[null,{"type":"tool_call","id":"c","name":"f","parameters":{"x":[1,null]},"arguments":"{\"x\":1}"}],"usage":[10,20,8,1,{"x":1},2],"finishReason":"tool_use","responseId":"r-1"}', '{"provider":"anthropic","model":"m-1"}');
INSERT INTO bodies VALUES (3025142988006763404, 1, 4, NULL, '{"blocks":[{"type":"tool_response","callId":"c","toolName":"f","result":{"ok":"\u0000!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"}}]}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 5, NULL, '{"blocks":[{"type":"text","text":"It is ''not''.","providerMetadata":{"id":"x"}}]}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 6, NULL, '{"blocks":[{"type":"media","kind":"image","mimeType":"image/png","data":"AP8="},{"type":"media","kind":"file","mimeType":"text/plain","url":"https://x.test/a"},{"type":"raw","data":{"new":[true]}}]}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 7, NULL, NULL, NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 8, 'Is 91 prime?', NULL, NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 9, 'Is 91 prime? é 😀', '{"metadata":{"from":"test\u0000"}}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 10, 'No.', '{"blocks":[null,{"type":"tool_call","id":"c","name":"f","parameters":{"x":[1,null]},"arguments":"{\"x\":1}"}],"usage":[10,20,8,1,{"x":1},2],"finishReason":"tool_use","responseId":"r-1"}', '{"provider":"anthropic","model":"m-1"}');
INSERT INTO bodies VALUES (3025142988006763404, 1, 11, NULL, '{"blocks":[{"type":"tool_response","callId":"c","toolName":"f","result":{"ok":"\u0000!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"}}]}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 12, NULL, '{"blocks":[{"type":"text","text":"It is ''not''.","providerMetadata":{"id":"x"}}]}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 13, NULL, '{"blocks":[{"type":"media","kind":"image","mimeType":"image/png","data":"AP8="},{"type":"media","kind":"file","mimeType":"text/plain","url":"https://x.test/a"},{"type":"raw","data":{"new":[true]}}]}', NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 14, NULL, NULL, NULL);
INSERT INTO bodies VALUES (3025142988006763404, 1, 15, 'again', NULL, NULL);
INSERT INTO bodies VALUES (3025142988006763404, 2, 13, 'otherwise', NULL, NULL);
INSERT INTO bodies VALUES (8114676596474200780, 1, 1, 'Be brief.', NULL, NULL);
INSERT INTO bodies VALUES (8114676596474200780, 1, 2, NULL, NULL, NULL);
INSERT INTO bodies VALUES (8114676596474200780, 1, 3, 'No.', '{"blocks":[null,{"type":"tool_call","id":"c","name":"f","parameters":{"x":[1,null]},"arguments":"{\"x\":1}"}],"usage":[10,20,8,1,{"x":1},2],"finishReason":"tool_use","responseId":"r-1"}', '{"provider":"anthropic","model":"m-1"}');
INSERT INTO bodies VALUES (8114676596474200780, 1, 4, NULL, '{"blocks":[{"type":"tool_response","callId":"c","toolName":"f","result":{"ok":"\u0000!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"}}]}', NULL);
INSERT INTO bodies VALUES (8114676596474200780, 1, 5, NULL, '{"blocks":[{"type":"text","text":"It is ''not''.","providerMetadata":{"id":"x"}}]}', NULL);
INSERT INTO bodies VALUES (8114676596474200780, 1, 6, NULL, '{"blocks":[{"type":"media","kind":"image","mimeType":"image/png","data":"AP8="},{"type":"media","kind":"file","mimeType":"text/plain","url":"https://x.test/a"},{"type":"raw","data":{"new":[true]}}]}', NULL);
INSERT INTO bodies VALUES (8114676596474200780, 1, 7, NULL, NULL, NULL);
INSERT INTO draft_parts VALUES (3025142988006763404, 2, 1, '{"text":"so f"}');
INSERT INTO draft_parts VALUES (3025142988006763404, 2, 2, '{"text":"ar"}');
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 3, 0, 7, 'thinking', '7 * 13
is 91', '{"signature":"sig"}', 0);
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 3, 1, 3, NULL, '', '{"encrypted":"c2VjcmV0","redacted":true}', 0);
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 5, 0, 2, 'reasoning_content', NULL, '{"thought":"a\u0000b"}', 1);
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 7, 0, 4, NULL, 'only this', NULL, 0);
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 10, 0, 7, 'thinking', '7 * 13
is 91', '{"signature":"sig"}', 0);
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 10, 1, 3, NULL, '', '{"encrypted":"c2VjcmV0","redacted":true}', 0);
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 12, 0, 2, 'reasoning_content', NULL, '{"thought":"a\u0000b"}', 1);
INSERT INTO thinking_blocks VALUES (3025142988006763404, 1, 14, 0, 4, NULL, 'only this', NULL, 0);
INSERT INTO thinking_blocks VALUES (8114676596474200780, 1, 3, 0, 7, 'thinking', '7 * 13
is 91', '{"signature":"sig"}', 0);
INSERT INTO thinking_blocks VALUES (8114676596474200780, 1, 3, 1, 3, NULL, '', '{"encrypted":"c2VjcmV0","redacted":true}', 0);
INSERT INTO thinking_blocks VALUES (8114676596474200780, 1, 7, 0, 4, NULL, 'only this', NULL, 0);
