package sample;

import com.baomidou.mybatisplus.annotation.IdType;
import com.baomidou.mybatisplus.annotation.TableId;
import com.baomidou.mybatisplus.annotation.TableName;
import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import io.firn.FirnClient;
import io.firn.LocalGenerator;
import io.firn.spring.FirnId;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import org.apache.ibatis.annotations.Mapper;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;

/** Stores rows by Hibernate and by MyBatis-Plus, whose identifiers come from Firn, and prints them. */
@SpringBootApplication
public class Sample {
  /** A row that Hibernate stores. */
  @Entity
  @Table(name = "orders")
  public static class Order {
    @Id
    @FirnId
    public Long id;
  }

  /** A row that MyBatis-Plus stores. */
  @TableName("orders")
  public static class Row {
    @TableId(type = IdType.ASSIGN_ID)
    public Long id;

    public Long getId() {
      return id;
    }

    public void setId(Long id) {
      this.id = id;
    }
  }

  /** The rows of MyBatis-Plus. */
  @Mapper
  public interface Rows extends BaseMapper<Row> {}

  @Bean
  CommandLineRunner store(EntityManagerFactory factory, Rows rows, FirnClient client, Environment environment,
      ObjectProvider<LocalGenerator> generator) {
    return arguments -> {
      for (int i = 0; i < 10; i++) {
        System.out.println("hibernate " + stored(factory).id);
        Row row = new Row();
        rows.insert(row);
        System.out.println("mybatis " + row.id);
      }
      System.out.println("client " + client.nextId("default"));
      generator.ifAvailable(one -> System.out.println("machine " + one.machineId().getAsInt()));
      System.out.println("rows " + rows.selectCount(null));
      System.out.println("port " + environment.getProperty("local.server.port"));
    };
  }

  private static Order stored(EntityManagerFactory factory) {
    try (EntityManager manager = factory.createEntityManager()) {
      Order order = new Order();
      manager.getTransaction().begin();
      manager.persist(order);
      manager.getTransaction().commit();
      return order;
    }
  }

  public static void main(String[] arguments) {
    SpringApplication.run(Sample.class, arguments);
  }
}
