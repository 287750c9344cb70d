import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Kafka's own classes, asked line by line: words are separated by tabs, an answer ends with a line that is a dot.
 *
 *   translate BOOTSTRAP ALIAS GROUP         RemoteClusterUtils.translateOffsets
 *   remote    BOOTSTRAP ALIAS GROUP         MirrorClient.remoteConsumerOffsets
 *   topics    BOOTSTRAP                     MirrorClient.checkpointTopics
 *   consume   BOOTSTRAP TOPIC GROUP COUNT RESET   a consumer group: so many records (-1: to the end), then commit
 */
public class GroupProbe {
  public static void main(String[] arguments) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    String line;
    while ((line = in.readLine()) != null) {
      String[] words = line.split("\t", -1);
      try {
        switch (words[0]) {
          case "translate" -> show(RemoteClusterUtils.translateOffsets(
              Map.of("bootstrap.servers", words[1]), words[2], words[3], Duration.ofSeconds(30)));
          case "remote" -> {
            try (var client = new MirrorClient(Map.of("bootstrap.servers", words[1]))) {
              show(client.remoteConsumerOffsets(words[3], words[2], Duration.ofSeconds(30)));
            }
          }
          case "topics" -> {
            try (var client = new MirrorClient(Map.of("bootstrap.servers", words[1]))) {
              client.checkpointTopics().forEach(System.out::println);
            }
          }
          case "consume" -> consume(words[1], words[2], words[3], Integer.parseInt(words[4]), words[5]);
          default -> System.out.println("error\tno such question");
        }
      } catch (Exception trouble) {
        System.out.println("error\t" + trouble);
      }
      System.out.println(".");
      System.out.flush();
    }
  }

  private static void show(Map<TopicPartition, OffsetAndMetadata> offsets) {
    offsets.forEach((place, found) -> System.out.println(
        place.topic() + "\t" + place.partition() + "\t" + found.offset() + "\t" + found.metadata()));
  }

  private static void consume(String bootstrap, String topic, String group, int count, String reset) {
    var settings = new Properties();
    settings.put("bootstrap.servers", bootstrap);
    settings.put("group.id", group);
    settings.put("enable.auto.commit", "false");
    settings.put("auto.offset.reset", reset);
    settings.put("isolation.level", "read_committed");
    settings.put("fetch.max.wait.ms", "50");
    var bytes = new ByteArrayDeserializer();
    int left = count < 0 ? Integer.MAX_VALUE : count;
    try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
      consumer.subscribe(List.of(topic));
      var next = new HashMap<TopicPartition, OffsetAndMetadata>();
      var deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
      while (left > 0) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
          if (left == 0) break;
          left--;
          next.put(new TopicPartition(record.topic(), record.partition()),
              new OffsetAndMetadata(record.offset() + 1));
          System.out.println(record.partition() + "\t" + record.offset() + "\t"
              + new String(record.value(), StandardCharsets.UTF_8));
        }
        if (count < 0 && isAtEnd(consumer)) break;
        if (System.nanoTime() > deadline) throw new IllegalStateException("no end within a minute");
      }
      if (!next.isEmpty()) consumer.commitSync(next);
    }
  }

  private static boolean isAtEnd(KafkaConsumer<?, ?> consumer) {
    Set<TopicPartition> assigned = consumer.assignment();
    if (assigned.isEmpty()) return false;
    return consumer.endOffsets(assigned).entrySet().stream()
        .allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
  }
}
