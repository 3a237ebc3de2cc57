"""The seeds of the campaign's schedules."""

# Short schedules. Together they had every kind of fault and setting when they were chosen.
EVERY_RUN: tuple[int, ...] = (1072, 1126, 1157, 1163, 1176, 1194, 1209, 1214, 1221, 1224, 1232, 1253)
EVERY_RUN += (1268, 1271, 1272, 1279, 1317, 1358, 1382, 1386, 1388, 1411, 1433)
CAMPAIGN = range(1_000, 2_000)
