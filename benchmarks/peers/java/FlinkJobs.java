import java.util.ArrayList;
import java.util.List;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.util.Collector;

/**
 * The workloads keyed-count and tumbling of `measuring.py` on Flink's Java DataStream API, with object reuse.
 *
 * Arguments: workload, records, keys, parallelism, turns. A small job of the same kind warms the JVM up. Then each turn
 * runs the whole job, and prints its seconds.
 */
public final class FlinkJobs {

    private static final TypeInformation<Tuple2<String, Long>> PAIR = Types.TUPLE(Types.STRING, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        String workload = arguments[0];
        long records = Long.parseLong(arguments[1]);
        long keys = Long.parseLong(arguments[2]);
        int parallelism = Integer.parseInt(arguments[3]);
        int turns = Integer.parseInt(arguments[4]);
        seconds(workload, Math.min(records, 2_000_000), keys, parallelism);
        List<String> seconds = new ArrayList<>();
        for (int turn = 0; turn < turns; turn++) {
            seconds.add(Double.toString(seconds(workload, records, keys, parallelism)));
        }
        System.out.println("{\"seconds\": [" + String.join(", ", seconds) + "]}");
    }

    private static double seconds(String workload, long records, long keys, int parallelism) throws Exception {
        StreamExecutionEnvironment environment = environment(parallelism);
        draw(environment, workload, records, keys).sinkTo(new DiscardingSink<>());
        long started = System.nanoTime();
        environment.execute(workload);
        return (System.nanoTime() - started) / 1e9;
    }

    private static StreamExecutionEnvironment environment(int parallelism) {
        Configuration configuration = new Configuration();
        configuration.set(PipelineOptions.OBJECT_REUSE, true);
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.setParallelism(parallelism);
        return environment;
    }

    private static DataStream<Tuple2<String, Long>> draw(
            StreamExecutionEnvironment environment, String workload, long records, long keys) {
        DataStream<Tuple2<String, Long>> pairs = environment
                .fromSource(new NumberSequenceSource(0, records - 1), WatermarkStrategy.noWatermarks(), "numbers")
                .map(new Pair(keys)).returns(PAIR);
        switch (workload) {
            case "keyed-count":
                return pairs.keyBy(pair -> pair.f0, Types.STRING).process(new Count()).returns(PAIR);
            case "tumbling":
                long half = records / 2;
                WatermarkStrategy<Tuple2<String, Long>> strategy = WatermarkStrategy
                        .<Tuple2<String, Long>>forMonotonousTimestamps()
                        .withTimestampAssigner((pair, before) -> {
                            long place = pair.f1 % half;
                            return place + 5000 * (place / 10000);
                        });
                return pairs.assignTimestampsAndWatermarks(strategy)
                        .keyBy(pair -> pair.f0, Types.STRING)
                        .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                        .reduce((one, other) -> Tuple2.of(one.f0, one.f1 + other.f1)).returns(PAIR);
            default:
                throw new IllegalArgumentException("unknown workload " + workload);
        }
    }

    /** Makes the pair of a number. */
    private static final class Pair implements MapFunction<Long, Tuple2<String, Long>> {
        private final long keys;

        Pair(long keys) {
            this.keys = keys;
        }

        @Override
        public Tuple2<String, Long> map(Long number) {
            return Tuple2.of("user_" + number * 7919 % keys, number);
        }
    }

    /** Counts the records of a key. */
    private static final class Count extends KeyedProcessFunction<String, Tuple2<String, Long>, Tuple2<String, Long>> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(
                Tuple2<String, Long> value, Context context, Collector<Tuple2<String, Long>> out) throws Exception {
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            out.collect(Tuple2.of(value.f0, now));
        }
    }
}
