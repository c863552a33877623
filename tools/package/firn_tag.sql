-- Firn's own table for a store of kind mysql (form = firn), in MySQL or MariaDB. Its user needs
-- SELECT, INSERT and UPDATE. Names of tags are compared byte by byte: `order` and `Order` are two
-- tags.
CREATE TABLE firn_tag (
  biz_tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  max_id BIGINT NOT NULL,
  step BIGINT NOT NULL,
  cluster VARCHAR(64) NOT NULL DEFAULT '',
  update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE = InnoDB;
