BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE chain (
	seq BIGINT NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	body TEXT, 
	PRIMARY KEY (seq)
);
INSERT INTO "chain" VALUES(1,'decision','d6843f61c546301cb148a9115ba55f34c7782acf727881724110582fba14fc31','3f2ac1e0a6b524c1c7619f0d0858fb3cb495e213212d2693e74033b1d5f0ad32',NULL);
INSERT INTO "chain" VALUES(2,'decision','2cab931ce5fecc341285611244740264ae244a8ac4c5bf72f1fef228845ca680','cf4e6f4566a25cb99738776ed8f83db3fe3c109a0ace71d1eb9ce8b76efafe8f',NULL);
INSERT INTO "chain" VALUES(3,'decision','33bf4a6766e4c17285323c46666818a87c27f92ce29f36c3c02dd5511b0e1136','3ef67c6d38ddcc91932f42748ed4aa3eee97650011ab8150b194bf6fadf0951c',NULL);
INSERT INTO "chain" VALUES(4,'feedback','5991d79e20928a51a671d06856ab897ac9e931300fca38a7f79c6d0faf6ab25a','27fe9483fd87eed22563795f5b14a413d3a4c3098d1fd6a98b4b6a0381138ef5',NULL);
CREATE TABLE decisions (
	seq BIGINT NOT NULL, 
	record_id VARCHAR(32) NOT NULL, 
	request_id VARCHAR(64) NOT NULL, 
	item INTEGER NOT NULL, 
	time VARCHAR(32) NOT NULL, 
	caller VARCHAR(128) NOT NULL, 
	route VARCHAR(32) NOT NULL, 
	policy TEXT NOT NULL, 
	policy_version TEXT NOT NULL, 
	policy_hash VARCHAR(64) NOT NULL, 
	decision VARCHAR(8) NOT NULL, 
	action VARCHAR(8) NOT NULL, 
	status VARCHAR(8) NOT NULL, 
	flagged TEXT NOT NULL, 
	share FLOAT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (record_id)
);
INSERT INTO "decisions" VALUES(1,'00000000000000000000000000000000','request-0',0,'2026-11-23T12:00:00.000000+00:00','app','check','default','3','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','flag','block','complete',',groundedness,',1.0,'{"detectors":{"groundedness":{"state":"evaluated","reason":null,"flagged":true,"action":"block","explanation":"One of two sentences is not supported.","latency_ms":1.5,"metrics":{"groundedness":{"score":0.30000000000000004,"direction":"higher_is_better","threshold":0.5,"flagged":true,"calibrated":false}},"spans":[{"start":0,"end":4,"label":"unsupported","score":0.25,"metric":"groundedness","evidence":[[1,2,9,0.125]]},{"start":5,"end":9,"label":"email","replacement":"[EMAIL_1]","attributes":{"validated":true}}],"coverage":{"answer":[9,9],"contexts":[20,20]}},"looping":{"state":"not_evaluated","reason":"deadline","flagged":false,"action":"allow","explanation":null,"latency_ms":0.0,"metrics":{},"spans":[],"coverage":null}},"options":{"groundedness":"0000000000000000"},"fingerprints":{"embedding":"abc"},"timings_ms":{"queue":1.0,"tokenize":2.0,"inference":3.0,"total":6.5},"deadline_ms":250.0,"shadow":[]}');
INSERT INTO "decisions" VALUES(2,'00000000000000000000000000000001','request-1',0,'2026-11-23T12:00:00.000000+00:00','app','check','default','3','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','pass','allow','complete',',',1.0,'{"detectors":{"looping":{"state":"not_evaluated","reason":"deadline","flagged":false,"action":"allow","explanation":null,"latency_ms":0.0,"metrics":{},"spans":[],"coverage":null}},"options":{"groundedness":"0000000000000000"},"fingerprints":{"embedding":"abc"},"timings_ms":{"queue":1.0,"tokenize":2.0,"inference":3.0,"total":6.5},"deadline_ms":250.0,"shadow":[]}');
INSERT INTO "decisions" VALUES(3,'00000000000000000000000000000002','request-2',0,'2026-11-23T12:00:00.000000+00:00','app','check','default','3','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','pass','allow','complete',',',1.0,'{"detectors":{"looping":{"state":"not_evaluated","reason":"deadline","flagged":false,"action":"allow","explanation":null,"latency_ms":0.0,"metrics":{},"spans":[],"coverage":null}},"options":{"groundedness":"0000000000000000"},"fingerprints":{"embedding":"abc"},"timings_ms":{"queue":1.0,"tokenize":2.0,"inference":3.0,"total":6.5},"deadline_ms":250.0,"shadow":[]}');
CREATE TABLE feedback (
	seq BIGINT NOT NULL, 
	decision_seq BIGINT NOT NULL, 
	time VARCHAR(32) NOT NULL, 
	caller VARCHAR(128) NOT NULL, 
	label VARCHAR(8) NOT NULL, 
	metric TEXT, 
	mode VARCHAR(8) NOT NULL, 
	comment TEXT, 
	wrapped TEXT, 
	PRIMARY KEY (seq)
);
INSERT INTO "feedback" VALUES(4,1,'2026-11-23T12:00:00.000000+00:00','ann','fail',NULL,'none',NULL,NULL);
CREATE TABLE head (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	seal VARCHAR(64), 
	"key" VARCHAR(8), 
	PRIMARY KEY (id)
);
INSERT INTO "head" VALUES(1,4,'27fe9483fd87eed22563795f5b14a413d3a4c3098d1fd6a98b4b6a0381138ef5',NULL,NULL);
CREATE TABLE texts (
	seq BIGINT NOT NULL, 
	mode VARCHAR(8) NOT NULL, 
	body TEXT, 
	wrapped TEXT, 
	PRIMARY KEY (seq)
);
INSERT INTO "texts" VALUES(1,'redacted','{"question":"Who?","answer":"Ann did.","contexts":["Ann did it."]}',NULL);
INSERT INTO "texts" VALUES(2,'redacted','{"question":"Who?","answer":"Ann did.","contexts":["Ann did it."]}',NULL);
INSERT INTO "texts" VALUES(3,'redacted','{"question":"Who?","answer":"Ann did.","contexts":["Ann did it."]}',NULL);
CREATE INDEX ix_decisions_request_id ON decisions (request_id);
CREATE INDEX ix_decisions_time ON decisions (time);
CREATE INDEX ix_decisions_caller ON decisions (caller);
CREATE INDEX ix_feedback_decision_seq ON feedback (decision_seq);
COMMIT;
