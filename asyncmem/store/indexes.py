"""The indexes of our collections, and the orders that memories are read in."""

from pymongo import ASCENDING, DESCENDING, IndexModel

NEWEST_FIRST = [("updated_at", DESCENDING), ("seq", DESCENDING), ("_id", DESCENDING)]
OLDEST_FIRST = [("updated_at", ASCENDING), ("seq", ASCENDING), ("_id", ASCENDING)]

MEMORY_INDEXES = [
    IndexModel([("user_id", ASCENDING), *NEWEST_FIRST, ("stamp", ASCENDING)], name="recent"),
    IndexModel([("user_id", ASCENDING), ("topics", ASCENDING), *NEWEST_FIRST], name="topic"),
    IndexModel(
        [("user_id", ASCENDING), ("key", ASCENDING)],
        name="identity",
        unique=True,
        partialFilterExpression={"key": {"$exists": True}},
    ),
    IndexModel([("expires_at", ASCENDING)], name="expiry", expireAfterSeconds=0, sparse=True),
]
ARCHIVE_INDEXES = [
    IndexModel([("user_id", ASCENDING), ("memory_id", ASCENDING), ("revision", ASCENDING)], name="memory"),
    IndexModel([("expire_at", ASCENDING)], name="retention", expireAfterSeconds=0),
]
CAPTURE_INDEXES = [
    IndexModel([("user_id", ASCENDING), ("prints", ASCENDING)], name="prints"),
    IndexModel([("pending", ASCENDING)], name="pending", sparse=True),
    IndexModel([("expire_at", ASCENDING)], name="remembered", expireAfterSeconds=0, sparse=True),
]
OPTIMIZATION_INDEXES = [
    IndexModel([("user_id", ASCENDING), ("kind", ASCENDING), ("at", DESCENDING)], name="runs"),
    IndexModel([("user_id", ASCENDING), ("run", ASCENDING), ("part", ASCENDING)], name="parts"),
    IndexModel([("pending", ASCENDING)], name="pending", sparse=True),
    IndexModel([("expire_at", ASCENDING)], name="retention", expireAfterSeconds=0, sparse=True),
]

LANE_INDEXES = [
    IndexModel([("due", ASCENDING)], name="due", sparse=True),
    IndexModel(
        [("since", ASCENDING), ("waiting", ASCENDING), ("taken", ASCENDING), ("due", ASCENDING)],
        name="waiting",
        partialFilterExpression={"since": {"$exists": True}},
    ),
    IndexModel([("dead_count", ASCENDING)], name="dead", sparse=True),
    IndexModel([("expire_at", ASCENDING)], name="kept", expireAfterSeconds=0, sparse=True),
]
PROFILE_LANE_INDEXES = [
    IndexModel([("profile", ASCENDING), ("due", ASCENDING)], name="due"),
    IndexModel([("profile", ASCENDING), ("since", ASCENDING)], name="waiting"),
    IndexModel([("profile", ASCENDING), ("dead_count", ASCENDING)], name="dead"),
    IndexModel([("user_id", ASCENDING)], name="user"),
    IndexModel([("expire_at", ASCENDING)], name="kept", expireAfterSeconds=0, sparse=True),
]
PROPOSAL_INDEXES = [
    IndexModel([("user_id", ASCENDING), ("status", ASCENDING), ("at", ASCENDING), ("_id", ASCENDING)], name="waiting"),
    IndexModel(
        [("user_id", ASCENDING), ("key", ASCENDING)],
        name="once",
        unique=True,
        partialFilterExpression={"key": {"$exists": True}},
    ),
    IndexModel([("expire_at", ASCENDING)], name="kept", expireAfterSeconds=0),
]
PROFILE_INDEXES = [IndexModel([("user_id", ASCENDING), ("profile", ASCENDING)], name="profile", unique=True)]
SESSION_INDEXES = [
    IndexModel([("user_id", ASCENDING), ("session_id", ASCENDING), ("seq", ASCENDING)], name="exchange", unique=True),
    IndexModel(
        [("user_id", ASCENDING), ("session_id", ASCENDING), ("pending", ASCENDING), ("seq", ASCENDING)],
        name="uncaptured",
        partialFilterExpression={"pending": True},
    ),
]
