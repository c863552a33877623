-- Firn's own table for a store of kind postgres (form = firn). Its user needs SELECT, INSERT and
-- UPDATE. Names of tags are compared byte by byte: `order` and `Order` are two tags.
CREATE TABLE firn_tag (
  biz_tag VARCHAR(128) COLLATE "C" NOT NULL,
  max_id BIGINT NOT NULL,
  step BIGINT NOT NULL,
  cluster VARCHAR(64) NOT NULL DEFAULT '',
  update_time TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
);
