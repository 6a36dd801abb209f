package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.IdempotenceRecord;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;

/** The command {@code stats}, which counts records. */
@Command(
        name = "stats",
        sortOptions = false,
        description = "Counts the records of the namespace by state, reading all of them once, in small steps.")
final class StatsCommand extends OperatorCommand {
    @Override
    int run(IdempotenceAdmin admin, Output output) {
        Progress progress = progress();
        IdempotenceAdmin.Stats stats = admin.stats(record -> progress.step());
        if (output.isJson()) {
            Map<String, Object> counts = new LinkedHashMap<>();
            stats.counts().forEach((state, count) -> counts.put(state.label(), count));
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("records", counts);
            result.put(
                    "oldestUncertain",
                    stats.oldestUncertain().map(IdempotenceRecord::fields).orElse(null));
            output.object(result);
        } else {
            output.line(String.format("%-11s  %12s", "STATE", "RECORDS"));
            stats.counts().forEach((state, count) -> output.line(String.format("%-11s  %12d", state.label(), count)));
            stats.oldestUncertain().ifPresent(record -> {
                output.line("");
                output.line("uncertain for longest:");
                output.row("", record);
            });
        }
        return OperatorTool.OK;
    }
}
